package escape

// callAttacks are system calls that open more of the kernel than a program
// needs.
func callAttacks() []Attack {
	return []Attack{
		kernel("userns_unshare", "make a user namespace with unshare"),
		kernel("userns_clone", "make a user namespace with clone"),
		kernel("userns_clone3", "make a user namespace with clone3"),
		kernel("calls_32bit", "make system calls through the 32-bit gate"),
		kernel("calls_x32", "make system calls by their x32 numbers"),
		kernel("mount", "mount, remount and unmount"),
		kernel("mount_new", "mount by the newer calls: fsopen, open_tree, mount_setattr"),
		kernel("chroot", "change the root with chroot and pivot_root"),
		kernel("file_handles", "open a file by its handle"),
		kernel("io_uring", "make calls that no filter sees with io_uring"),
		kernel("bpf", "load a program into the kernel"),
		kernel("perf", "watch the machine with perf_event_open"),
		kernel("userfaultfd", "stop the kernel at a page fault"),
		kernel("keyrings", "use keyrings, which namespaces do not part"),
		kernel("machine", "reach the machine: I/O ports, modules, reboot, clock, swap, log"),
		kernel("terminal_input", "type into the terminal with TIOCSTI, plain and with high bits set"),
	}
}

// socketAttacks are kinds of sockets that lead out of a network namespace or
// into rare parts of the kernel.
func socketAttacks() []Attack {
	return []Attack{
		kernel("sockets_raw", "open raw sockets"),
		kernel("sockets_packet", "open packet sockets"),
		kernel("sockets_vsock", "open sockets to the machine below"),
		kernel("sockets_netlink", "open netlink sockets"),
		kernel("sockets_alg", "open sockets to the kernel's cryptography"),
		kernel("sockets_rare", "open sockets of every other family"),
	}
}
