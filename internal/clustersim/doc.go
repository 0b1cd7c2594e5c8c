// Package clustersim plays a day of a cluster: sessions come in a daily rhythm and
// in bursts, [placement.Order] says which nodes are asked, nodes take them, queue
// them or refuse, crash, come back and are drained, and the directory is away for
// a while. What nodes know of each other is as old as heartbeats make it.
//
// It counts how even the load is, who waits, what is lost, and what the directory
// is asked, for sizes that no machine of ours can run. With the arrivals of a real
// run it predicts what should have happened there, to be compared with what did.
//
// A run is a function of its [Config]: the same seed gives the same day. The
// package must not start anything, look at a clock or touch a file, and it knows
// of the platform only its placement.
package clustersim
