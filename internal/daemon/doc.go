// Package daemon makes a running Cove of settings. It owns the layout of
// COVE_HOME, puts the parts together (providers, store, journal, archives,
// policy, engine), and keeps the process that serves them.
//
//	[Serve]    the server: one for each COVE_HOME
//	[Connect]  a client of that server, which is started if nobody runs it
//	[OneShot]  a platform in this process for one run, any number at once
//	[Embed]    a platform in this process that has COVE_HOME to itself
//
// # COVE_HOME
//
//	cove.lock       locked by the server; says who it is
//	cove.sock       its socket, for the same user and root only
//	cove.spawn      locked by a command while it starts a server
//	cove.db         sessions, keys, snapshots, runs
//	journal/        what was done, with journal.key and journal.anchor beside it
//	archives/       workspaces of stopped sessions
//	output/         long outputs
//	providers/      what each provider keeps
//	admin.key       the first key
//	link.key        signs links; without it all that were made are good no more
//	signed-out      which browsers signed out; without it none is signed in any more
//	daemon.log      of a server that was started on demand; daemon.log.1 is older
//	oneshot/N/      a lane: lock, journal/, output/, providers/ of runs in process
//
// # Lanes
//
// A run in process must not share the server's state: the table of sessions is
// the server's, and what it does not know there it removes as an orphan. Nor can
// it do without a journal. So it takes a lane of its own: the first whose lock
// is free, or a new one. A lane's journal goes on with every run that takes the
// lane, so that there are as many journals as there were ever runs at once, and
// what a killed run left in a lane is an orphan to the next one there, which
// removes it.
//
// The package must not know commands or flags, and must not read the
// environment: settings come as a [config.Config].
package daemon
