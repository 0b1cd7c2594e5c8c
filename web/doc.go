// Package web is the console in TypeScript, which scripts/web.sh builds and
// internal/console has inside. Its Go part is the test that opens it in a browser.
//
// Nothing imports it, and the console must not know more of Cove than the public API
// shows.
package web
