// ocishim stands in for runc where this machine may not grant every capability: "privileged" asks for all that the kernel
// knows, and runc refuses a container when one of them is outside of its own bounding set. The shim takes out of the
// specification what can't be granted anyway, and then becomes runc.
//
// The specification is config.json in the bundle for create and run, and the file of --process for exec.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The kernel's numbers of capabilities, by position (include/uapi/linux/capability.h).
var names = strings.Fields(`
	CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
	NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
	SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

func main() {
	arguments := os.Args[1:]
	command, options := parse(arguments)
	var err error
	switch command {
	case "create", "run":
		bundle := options["bundle"]
		if bundle == "" {
			bundle = "."
		}
		err = edit(filepath.Join(bundle, "config.json"), "process")
	case "exec":
		if file := options["process"]; file != "" {
			err = edit(file, "")
		}
	}
	if err != nil {
		fail(err)
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{runc}, arguments...), os.Environ()))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "ocishim:", err)
	os.Exit(1)
}

// parse finds runc's command and the values of --bundle and --process, which may be written in four ways.
func parse(arguments []string) (string, map[string]string) {
	short := map[string]string{"b": "bundle", "p": "process"}
	command, options := "", map[string]string{}
	for index, argument := range arguments {
		name, value, joined := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		if long := short[name]; long != "" {
			name = long
		}
		switch {
		case !strings.HasPrefix(argument, "-"):
			if command == "" && slices.Contains([]string{"create", "run", "exec"}, argument) {
				command = argument
			}
		case joined:
			options[name] = value
		case index+1 < len(arguments):
			options[name] = arguments[index+1]
		}
	}
	return command, options
}

// edit takes out of every list of capabilities in the file those that can't be granted. Numbers stay as they are written.
func edit(file, key string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	process := document
	if key != "" {
		process, _ = document[key].(map[string]any)
	}
	lists, _ := process["capabilities"].(map[string]any)
	if len(lists) == 0 {
		return nil
	}
	bounding, err := boundingSet()
	if err != nil {
		return err
	}
	for kind, list := range lists {
		entries, _ := list.([]any)
		lists[kind] = slices.DeleteFunc(entries, func(entry any) bool {
			name, _ := entry.(string)
			number := slices.Index(names, strings.TrimPrefix(name, "CAP_"))
			return number >= 0 && bounding&(1<<number) == 0
		})
	}
	changed, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(file, changed, 0o600)
}

// boundingSet is what this process, and so every container, can have at most.
func boundingSet() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, found := strings.CutPrefix(line, "CapBnd:"); found {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no line CapBnd")
}
