// nodenet is the smallest network for pods on kind's nodes, as a DaemonSet on the host network. On each node it writes a
// CNI configuration for the node's own pod range, and keeps one route for each other node: its pod range by way of its
// address. All nodes are on one Docker network, so nothing else is needed; kind's own kindnetd is not served as a Go
// module.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	account  = "/var/run/secrets/kubernetes.io/serviceaccount"
	folder   = "/etc/cni/net.d"
	interval = 2 * time.Second        // nodes come and go seldom; a list of a handful of them costs nothing
	again    = 300 * time.Millisecond // until kube-proxy has made the API server's service address work
)

type node struct {
	Metadata struct{ Name string }
	Spec     struct{ PodCIDR string }
	Status   struct {
		Addresses []struct{ Type, Address string }
	}
}

func main() {
	client, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	self, link := os.Getenv("NODE_NAME"), os.Getenv("LINK")
	for {
		nodes, err := list(client)
		if err != nil {
			log.Print(err)
			time.Sleep(again)
			continue
		}
		for _, one := range nodes {
			if err := settle(one, self, link); err != nil {
				log.Print(err)
			}
		}
		time.Sleep(interval)
	}
}

func newClient() (*http.Client, error) {
	certificates, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certificates) {
		return nil, fmt.Errorf("%s/ca.crt holds no certificate", account)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return &http.Client{Timeout: 10 * time.Second, Transport: transport}, nil
}

// list reads the token each time, since it is renewed on disk.
func list(client *http.Client) ([]node, error) {
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return nil, err
	}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(http.MethodGet, "https://"+server+"/api/v1/nodes?resourceVersion=0", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("listing nodes: %s", response.Status)
	}
	var answer struct{ Items []node }
	return answer.Items, json.NewDecoder(response.Body).Decode(&answer)
}

// settle does what is due for one node: the configuration for our own, a route for another.
func settle(one node, self, link string) error {
	if one.Spec.PodCIDR == "" {
		return nil
	}
	if one.Metadata.Name == self {
		return configure(one.Spec.PodCIDR, link)
	}
	_, pods, err := net.ParseCIDR(one.Spec.PodCIDR)
	if err != nil {
		return err
	}
	for _, address := range one.Status.Addresses {
		if ip := net.ParseIP(address.Address).To4(); address.Type == "InternalIP" && ip != nil {
			return netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: ip})
		}
	}
	return nil
}

// configure writes the configuration unless it is there. Until it is, the kubelet calls the node not ready.
func configure(pods, link string) error {
	device, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	type object = map[string]any
	wanted, err := json.MarshalIndent(object{
		"cniVersion": "0.4.0",
		"name":       "nodenet",
		"plugins": []object{
			{
				"type": "ptp",
				"mtu":  device.MTU,
				// Addresses in use are forgotten with the node's /run, as its pods are.
				"ipam": object{
					"type":    "host-local",
					"dataDir": "/run/cni-ipam-state",
					"routes":  []object{{"dst": "0.0.0.0/0"}},
					"ranges":  [][]object{{{"subnet": pods}}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(folder, "10-nodenet.conflist")
	if there, err := os.ReadFile(path); err == nil && string(there) == string(wanted) {
		return nil
	}
	// The kubelet must never read half a file, and reads none that begins with a dot.
	partial := filepath.Join(folder, ".nodenet")
	if err := os.WriteFile(partial, wanted, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
