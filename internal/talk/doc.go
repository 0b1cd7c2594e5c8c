// Package talk has the two ends of a program in a sandbox that is spoken to over its
// standard streams: what is said to it, and the beginning of what it complains of.
//
// It must not know what is said, nor start or end a program.
package talk
