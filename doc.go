// Package cove is the language of the platform: the nouns, the verbs and the
// error codes that every other package speaks.
//
// A caller holds a [Platform] and opens a [Session], the durable lease on a
// [Sandbox] that a [Provider] made. What the caller may do is decided by a
// [Policy], written down in a [Journal], and remembered in a [Store].
//
//	provider/*  how a sandbox is isolated      implements [Provider]
//	store/*     where records are kept         implements [Store]
//	engine      what happens to a request      implements [Platform]
//	client      the same, across the network   implements [Platform]
//	inprocess   an engine with all its parts   implements [Platform]
//
// This package imports only the standard library, starts no goroutine and does
// no I/O. It must not know how anything is done: implementations live below it
// and never import one another.
package cove
