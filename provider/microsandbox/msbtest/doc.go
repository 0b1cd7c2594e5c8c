// Package msbtest plays microsandbox for tests: [Server] is a server of its
// versions 0.1 to 0.2.6, [Program] the msb program of 0.6 and 0.7. Both are written
// from what is known of their protocols; neither was compared with a live one. The
// machines are sandboxes of any provider that runs programs, and need no files.
//
// Beside what the originals do right it plays what they do wrong, and what stands
// in their place when a setting is wrong: [Quirks]. It must not be used to isolate
// anything, and must not know the provider that is tested with it.
package msbtest
