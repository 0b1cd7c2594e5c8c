// Package typescript is the SDK for TypeScript and JavaScript; its README says what it
// does. The Go part is its test alone: it runs the SDK's own tests against servers, and
// its package as somebody installs it. It must not contain anything that a server needs.
package typescript
