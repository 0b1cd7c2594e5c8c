// Package sdk is where the SDKs in other languages are, and what holds them to the
// behaviour of the Go client: scenarios is one table of steps and what must come of
// them, which every SDK runs against a real server. The tests here start the servers
// and run each SDK's own tests, its examples and its package as somebody installs it.
//
// It must not contain anything that a server or the Go client needs.
package sdk
