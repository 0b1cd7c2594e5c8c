// Package landlock bounds which parts of the file tree a process can touch, as a
// second wall behind the mounts.
//
// A [Ruleset] is an allow-list: what no rule allows is refused, also to root and
// also through descriptors opened later. Kernels learned to refuse more over
// time; Restrict refuses what this one can and reports what it cannot. It must
// not be the only thing between a sandbox and a file: it does not hide names,
// and files that were open before stay open.
//
// Minimum kernel: Linux 5.13, with landlock among the active security modules.
package landlock
