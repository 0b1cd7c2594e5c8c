// Package cluster makes one server a node of many. It keeps the node's lease in the
// directory that all share, finds out which node has a session, and is the platform
// that callers of any node get: what this node has its engine answers, and what
// another one has is asked there, over one hop.
//
// # The lease
//
// A node is believed while its lease lasts. It renews it four times in that time and
// counts from before each renewal, by its own clock, so that it stops to answer for
// its sessions before the directory gives them up. The directory alone says that a
// node is gone, by its own clock, and whoever asks then for one of its sessions ends
// that in the same step: a session that somebody was told is lost stays lost.
//
// While the directory cannot be reached a node takes nothing new, and serves the
// sessions that it has until its lease ran out. When it is back, the node takes a new
// lease and compares: sessions that others gave up are ended here, all others go on.
// A directory that was begun anew is told what each node has; until it had time for
// that, nobody is told that a session is not there.
//
// # Calls between nodes
//
// Each node has a door for others. Both ends show certificates that only who knows
// the cluster's secret can make, with the name of the node in them, so that a call
// names the node that it is for. A caller's identity goes along in a header, which
// is believed at this door alone. What comes in by it is answered here or not at
// all: nothing is forwarded twice.
//
// A node that does not have what it was asked for says who does ([cove.ReasonElsewhere]),
// and whoever asked follows, a few times. That, and nothing else, is tried again: a
// call that broke off may have been carried out.
//
// # Requests that are passed on
//
// Some of what clients have is kept by a node and no record of it is shared, such as an
// MCP session. Its id has a mark of that node in it ([Mark]), and another node hands
// the whole request on to that node's door ([Member.Pass]), with the key that the
// caller showed, so that the node with the thing asks for it itself.
//
// The package must not make sandboxes, decide what callers may do or keep records: it
// asks the engine and the directory. It must not know what the directory is made of.
package cluster
