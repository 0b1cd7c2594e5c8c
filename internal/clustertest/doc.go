// Package clustertest starts a cluster of nodes with a Redis, or a server by itself,
// breaks it in all the ways that machines, disks and networks break, and writes down what clients are told
// meanwhile, for package history to judge. Only tests import it.
//
// Nodes and Redis are processes, each in a network of its own, and each node has a disk
// of its own; the clients are in
// this process, in the network that connects them all. What is broken when, and
// what clients try, comes from a seed alone.
//
// It must not know how a cluster works inside: it sees what any client sees, and
// breaks what a machine can break. It must not touch a process or a network that
// it did not make.
package clustertest
