package escape

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackers are the native attacks, by name.
func attackers() map[string]func(mission) verdict {
	return map[string]func(mission) verdict{
		hello: func(mission) verdict { return heldBy(hello) },

		"read_outside":  readOutside,
		"write_outside": writeHost,
		"submounts":     tellMounts,
		"host_settings": tellSettings,
		"hard_links":    hardLinks,
		"device_nodes":  deviceNodes,
		"devices":       openDevices,
		"swap":          swapNames,

		"proc_writes":  procWrites,
		"proc_secrets": procSecrets,
		"proc_machine": procMachine,
		"sys_writes":   sysWrites,
		"namespaces":   tellNamespaces,
		"setns":        enterNamespaces,
		"core_dumps":   dumpCore,

		"agent_memory":     agentMemory,
		"agent_trace":      agentTrace,
		"agent_executable": agentExecutable,
		"agent_limits":     agentLimits,
		"agent_signals":    agentSignals,

		"setuid":       becomeRoot,
		"capabilities": takeCapabilities,
		"priorities":   raisePriorities,

		"userns_unshare": unshareUser,
		"userns_clone":   cloneUser,
		"userns_clone3":  clone3User,
		"calls_32bit":    calls32,
		"calls_x32":      callsX32,
		"mount":          mountOld,
		"mount_new":      mountNew,
		"chroot":         changeRoot,
		"file_handles":   fileHandles,
		"io_uring":       ioUring,
		"bpf":            loadBPF,
		"perf":           perfEvents,
		"userfaultfd":    userFaults,
		"keyrings":       useKeyrings,
		"machine":        reachMachine,
		"terminal_input": typeIntoTerminal,

		"sockets_raw":     socketsOf(rawSockets),
		"sockets_packet":  socketsOf(packetSockets),
		"sockets_vsock":   socketsOf(vsockSockets),
		"sockets_netlink": socketsOf(netlinkSockets),
		"sockets_alg":     socketsOf(algSockets),
		"sockets_rare":    rareSockets,

		"host_loopback":         callLoopback,
		"host_sockets":          callSockets,
		"host_abstract_sockets": callAbstract,
		"private_addresses":     callPrivate,
		"metadata_addresses":    callMetadata,
		"public_addresses":      callPublic,

		"egress_private_names": callPrivateNames,
		"egress_raw_addresses": callRaw,
		"egress_private":       callOpen(privateAddresses),
		"egress_metadata":      callOpen(metadataAddresses),
		"egress_ipv6":          callOpen(wrappedAddresses),
		"egress_udp":           sendPackets,
		"egress_udp_open":      sendPackets,
		"egress_denied_names":  askDenied,
		"egress_dns_flood":     floodNames,
		"egress_dns_tunnel":    tunnelNames,
		"egress_rebinding":     rebind,
		"egress_redirects":     followRedirects,

		"volume_writes":    changeVolume,
		"volume_remount":   remountVolume,
		"volume_links":     linkVolume,
		"volume_symlinks":  leaveVolume,
		"volume_programs":  useVolumePrograms,
		"workspace_device": reachBlocks,

		"environment_leak": findEnvironment,

		"other_files":     readNeighbour,
		"other_processes": killNeighbour,
		"share":           shareMemory,
		"other_memory":    reachMemory,

		"kernel_memory_locks":       lockRanges,
		"kernel_memory_flocks":      lockFiles,
		"kernel_memory_connections": connectUnaccepted,
		"kernel_memory_hidden":      shareFiles,

		"hold_locks":   holdLocks,
		"shared_locks": findLocks,

		"survivors_sibling": startSibling,
		"fork_bomb":         startMany,
		"zombie_bomb":       leaveMany,
		"descriptor_bomb":   openMany,

		"kernel_lists":    keepLists,
		"kernel_keys":     keepKeys,
		"kernel_queues":   fillQueues,
		"open_files":      tellFiles,
		"huge_pages":      mapHugePages,
		"filters_sockets": attachFilters,
		"filters_own":     installFilters,
		"file_locks":      lockOpenFiles,
	}
}

// errnoName is the kernel's own word for an error.
func errnoName(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return err.Error()
}

// meaning says what an error of the file system or the network tells.
func meaning(err error) string {
	name := errnoName(err)
	why := map[string]string{
		"ENOENT": "no such file here", "EACCES": "no permission", "EROFS": "mounted read-only", "EXDEV": "on another mount",
		"ENETUNREACH": "the network namespace has no route", "ECONNREFUSED": "nobody listens in this network namespace",
		"ECONNRESET": "the way out hangs up",
	}[name]
	if why == "" {
		return name
	}
	return name + ": " + why
}

// failure is nil for 0.
func failure(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// reachable opens a file and says what stopped it; "" means nothing did.
func reachable(name string, flags int) string {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return meaning(err)
	}
	_ = unix.Close(fd)
	return ""
}

// status returns a field of /proc/self/status.
func status(field string) string {
	text, _ := content("/proc/self/status") // nothing where there is no /proc
	for line := range bytes.Lines(text) {
		if k, v, _ := strings.Cut(string(line), ":"); k == field {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// visible returns the processes that /proc shows.
func visible() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	return dirs
}

// call is one system call that must fail.
type call struct {
	name string
	do   func() error
	twin func() error // the same call with arguments that the kernel refuses for another reason
}

// make makes the calls. Their errors name who refused: where a call that the
// kernel would answer otherwise is refused in the same way, it was the filter.
func (t *tally) make(calls ...call) {
	for _, c := range calls {
		err := c.do()
		if err == nil {
			t.through(c.name + " works")
			continue
		}
		by := errnoName(err)
		if c.twin != nil {
			if twin := c.twin(); twin != nil && errors.Is(twin, err) && status("Seccomp") == "2" {
				by += " from the seccomp filter"
			}
		}
		t.stop(by, c.name)
	}
}

// kept holds what raw calls point to, so that it stays where it is.
var kept []any

// at returns the address of a copy of v that never moves.
func at[T any](v T) uintptr {
	p := new(T)
	*p = v
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

// cstring returns the address of a text with a NUL behind it.
func cstring(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// sys makes a raw system call.
func sys(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		return failure(errno)
	}
}
