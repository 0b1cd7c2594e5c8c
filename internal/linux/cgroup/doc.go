// Package cgroup bounds, counts and ends groups of processes.
//
// It hides which kind of control groups a host has: version 2, the hierarchies
// of version 1, or the latter with an empty version 2 beside them. [Open] finds
// what is mounted and what this process may use of it, and says for each limit
// whether it can be enforced. A [Group] is one directory in each hierarchy that
// is needed, with the same name.
//
// The package changes nothing outside the directories it made, with one
// exception: in a delegated version 2 group that holds only this process, it
// moves the process into a leaf, since the kernel gives controllers only to
// groups without processes of their own. It must not bound what is not in a
// group of its own, and it never raises a limit that somebody put on us.
//
// Minimum kernel: Linux 4.5 (version 2), 4.13 to count processes that died for
// lack of memory; from 5.14 on a group is killed in one stroke, from 5.19 on
// version 2 knows its peak of memory. Version 1 works on all of them.
package cgroup
