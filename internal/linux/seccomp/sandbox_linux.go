package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Sandbox is the policy for untrusted programs: what interpreters, compilers,
// shells and their tools use on files, memory, processes and sockets of their
// own, and nothing that changes the machine, looks into other processes or
// widens what a bug in the kernel would give away.
//
// Not named, and so refused with EPERM: mounts and namespaces, ptrace and the
// memory of others, keyrings, bpf, perf, userfaultfd, modules, kexec, clocks,
// quotas, accounting, swap, reboot, handles of files, fanotify, chroot, host
// names, I/O ports, LDTs, and all that is obsolete.
func Sandbox() Policy {
	return Policy{
		Rules: slices.Concat([]Rule{
			{Calls: slices.Concat(fileCalls, memoryCalls, processCalls, signalCalls, timeCalls, socketCalls, ipcCalls, oldCalls), Else: Allow},
			{Calls: absentCalls, Else: Fail(unix.ENOSYS)},
		}, processRules(), socketRules(), fileRules(), memoryRules(), oldRules()),
		Default: Fail(unix.EPERM),
		Newer:   Fail(unix.ENOSYS),
	}
}

var fileCalls = []string{
	"chdir", "close", "close_range", "copy_file_range", "dup", "dup3", "epoll_create1", "epoll_ctl", "epoll_pwait",
	"epoll_pwait2", "eventfd2", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat",
	"fchmodat2", "fchown", "fchownat", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
	"fstat", "fstatfs", "fsync", "ftruncate", "getcwd", "getdents64", "getxattr", "getxattrat",
	"inotify_add_watch", "inotify_init1", "inotify_rm_watch", "lgetxattr", "linkat", "listxattr", "listxattrat", "llistxattr",
	"lremovexattr", "lseek", "mkdirat", "newfstatat", "openat", "openat2", "pipe2", "ppoll", "pread64",
	"preadv", "preadv2", "pselect6", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlinkat", "readv",
	"removexattr", "removexattrat", "renameat", "renameat2", "sendfile", "splice", "statfs",
	"statx", "symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlinkat", "utimensat",
	"vmsplice", "write", "writev",
}

var memoryCalls = []string{
	"brk", "madvise", "map_shadow_stack", "membarrier", "mincore", "mlock", "mlock2", "mlockall",
	"mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free",
	"pkey_mprotect",
}

// processCalls holds what changes identity, too: without capabilities a process
// can only become what it already is.
var processCalls = []string{
	"capget", "capset", "execve", "execveat", "exit", "exit_group", "futex", "futex_requeue", "futex_wait",
	"futex_waitv", "futex_wake", "get_robust_list", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid",
	"getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid",
	"gettid", "getuid", "ioprio_get", "landlock_add_rule", "landlock_create_ruleset",
	"landlock_restrict_self", "pidfd_open", "restart_syscall", "rseq", "rseq_slice_yield",
	"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
	"sched_getscheduler", "sched_rr_get_interval", "sched_yield", "set_robust_list", "set_tid_address", "setfsgid", "setfsuid", "setgid",
	"setgroups", "setpgid", "setregid", "setresgid", "setresuid", "setreuid", "setsid",
	"setuid", "sysinfo", "uname", "wait4", "waitid",
}

var signalCalls = []string{
	"kill", "pidfd_send_signal", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
	"rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack", "signalfd4", "tgkill", "tkill",
}

var timeCalls = []string{
	"clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday", "nanosleep", "setitimer",
	"timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create",
	"timerfd_gettime", "timerfd_settime", "times",
}

var socketCalls = []string{
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
	"recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown",
}

// ipcCalls stay within the namespace of the sandbox.
var ipcCalls = []string{
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget",
	"msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt",
}

// absentCalls are those that programs can do without, and do when the kernel
// says that it has none: clone3 because its flags are behind a pointer, which
// no filter can read; io_uring because it makes calls that no filter sees; the
// older io_setup because its bound is one for the whole machine; setxattrat because
// the size, by which the others are judged, is behind a pointer; the rest
// because they show more of the machine than a program needs.
var absentCalls = []string{
	"cachestat", "clone3", "file_getattr", "file_setattr", "get_mempolicy", "io_cancel", "io_destroy", "io_getevents",
	"io_pgetevents", "io_setup", "io_submit", "io_uring_enter", "io_uring_register", "io_uring_setup", "listmount",
	"listns", "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "mbind",
	"memfd_secret", "migrate_pages", "move_pages", "set_mempolicy", "set_mempolicy_home_node", "setxattrat", "statmount",
}
