// Package upgradetest holds the promises of docs/cluster.md about nodes that are
// restarted, emptied and lost: its tests start three nodes that share a Redis, put
// load on them, replace their executable one after the other, drain them, kill them,
// and look at every file that a client was told is there.
//
// Nodes are processes of the real cove on loopback. Package clustertest, which has
// networks to break, looks for what nobody thought of; the tests here say what is
// promised, by name.
//
// It must not know how a cluster works inside, and must not end a process that it did
// not start. Nothing but its tests is in it.
package upgradetest
