// portproxy publishes a container's port on the machine's loopback. The Docker daemon starts it in place of its own
// docker-proxy, with the same arguments and with the same answer on file descriptor 3 ("0\n", or "1\n" and the reason).
//
// The daemon lives in a network namespace of its own that has no way out. So the socket that listens is opened in the
// machine's network namespace (named by PORTPROXY_NETNS), and the connections to the container in the daemon's.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

func main() {
	protocol := flag.String("proto", "tcp", "tcp, the only one")
	hostIP := flag.String("host-ip", "", "where to listen: loopback only")
	hostPort := flag.Int("host-port", 0, "where to listen")
	containerIP := flag.String("container-ip", "", "where to connect to")
	containerPort := flag.Int("container-port", 0, "where to connect to")
	flag.Parse()
	answer := os.NewFile(3, "answer")
	listener, err := listen(*protocol, net.ParseIP(*hostIP), *hostPort, os.Getenv("PORTPROXY_NETNS"))
	if err != nil {
		fmt.Fprintf(answer, "1\n%s", err)
		os.Exit(1)
	}
	fmt.Fprint(answer, "0\n")
	answer.Close()
	target := &net.TCPAddr{IP: net.ParseIP(*containerIP), Port: *containerPort}
	go serve(listener, target)
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGINT, syscall.SIGTERM)
	<-ending
}

// listen opens the socket on a thread that is in the machine's network namespace for that moment: a socket belongs to the
// namespace in which it was made.
func listen(protocol string, ip net.IP, port int, namespace string) (*net.TCPListener, error) {
	if protocol != "tcp" || !ip.IsLoopback() {
		return nil, fmt.Errorf("only tcp ports on loopback are published, not %s on %s", protocol, ip)
	}
	runtime.LockOSThread() // stays locked where the way back fails: the thread is of no use then
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer here.Close()
	there, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := setns(there); err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	if back := setns(here); back != nil {
		return nil, back
	}
	if err != nil {
		return nil, err
	}
	runtime.UnlockOSThread()
	return listener, nil
}

func setns(file *os.File) error {
	if _, _, number := syscall.RawSyscall(setnsCall, file.Fd(), syscall.CLONE_NEWNET, 0); number != 0 {
		return fmt.Errorf("entering network namespace %s: %w", file.Name(), number)
	}
	return nil
}

func serve(listener *net.TCPListener, target *net.TCPAddr) {
	for {
		client, err := listener.AcceptTCP()
		if err != nil {
			return
		}
		go relay(client, target)
	}
}

// relay copies both ways, and hands on each side's end of writing.
func relay(client *net.TCPConn, target *net.TCPAddr) {
	defer client.Close()
	server, err := net.DialTCP("tcp", nil, target)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Add(1)
		go func() {
			defer both.Done()
			io.Copy(way[1], way[0])
			way[1].CloseWrite()
			way[0].CloseRead()
		}()
	}
	both.Wait()
}
