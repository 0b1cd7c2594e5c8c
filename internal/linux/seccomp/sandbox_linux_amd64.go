package seccomp

// oldCalls are what newer architectures no longer have under these names.
var oldCalls = []string{
	"access", "alarm", "arch_prctl", "chmod", "chown", "creat", "dup2", "epoll_create", "epoll_wait", "eventfd", "fork",
	"futimesat", "getdents", "getpgrp", "inotify_init", "lchown", "link", "lstat", "mkdir", "open", "pause", "pipe",
	"poll", "readlink", "rename", "rmdir", "select", "signalfd", "stat", "symlink", "time", "unlink", "uprobe",
	"uretprobe", "utime", "utimes", "vfork",
}

func oldRules() []Rule { return []Rule{nodes("mknod", 1)} }
