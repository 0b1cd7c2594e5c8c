// Package redis keeps what the nodes of a cluster share in a Redis: the records
// of a cove.Store, and what a cove.Directory knows of the nodes. It is the one
// importer of the client library.
//
// # Writes
//
// Every write is one script, which Redis runs with nothing in between. It first
// compares the lease of the node that asks, and writes nothing where that is not
// the one that the node believes it has. So a node that was paused, or cut off,
// cannot write after another one took over, however late its command arrives.
// Nothing is sent twice: a command whose answer did not come may have been done.
// Only what Redis refused to look at, because a master moved, is sent again.
//
// All times in which something expires are Redis's own. All keys have one tag in
// braces, so that a Redis Cluster keeps them in one slot and scripts work there.
//
// # Keys
//
// Each begins with the prefix in braces and a colon. Names that are made of
// several texts are those texts with their lengths, so that none is taken for
// another.
//
//	epoch                  hash: run (of the server), id, began, settle, origin (the first id of this hash)
//	token                  the last token of a lease
//	lease:NODE             "token instance", expires
//	node:NODE              hash: data, seen, cordoned, away; kept for an hour after it was last seen
//	nodes                  all nodes that have a record or sessions
//	session:ID             hash: data (JSON), version, tenant, owner, state, node, memory, holder
//	sessions:open          ids of all but the ended; sessions:of:TENANT and sessions:at:NODE are parts of it
//	sessions:ended         ids of the ended
//	holder:TENANT,USER,THREAD  the id of the live session that has them
//	held:tenant:TENANT     hash: sessions, memory of those with a sandbox; held:owner:OWNER likewise
//	key:ID                 hash: data, hash, sessions (the bound), sets
//	hash:HASH              the id of the key with that hash
//	tenant:NAME            hash: data, sessions, memory (the bounds), sets
//	usage:TENANT           hash: held, memory, cpu, executions, up, down
//	snapshot:ID, volume:ID, run:ID, message:ID  hash: data, sets
//	KIND:all and others    sorted sets of ids, by which records are listed; the sets of a record are in its hash
//	run:age:TENANT, message:age  by time and id, to trim
//	claim:TENANT,KEY       hash: digest, result, node, expires, nanos; expires
//	lock:NAME              hash: owner, node, lease; expires
//	spent:NAME             expires
//	notices                the channel on which changed keys and tenants are told
//
// # Scripts
//
// The files in the folder script are all that is ever run, each after
// prelude.lua. They answer with a word and what belongs to it. Of sessions,
// session_put.lua compares the version, sees that nobody else holds the user and
// thread, counts sandboxes, and refuses one too many, all at once. What a record
// counted for is read from the record that it replaces, so that the counters are
// right whatever happens to a session.
//
// # Loss
//
// A server that is another one than before, or empty, begins a new epoch: it may
// lack what nodes know. For a lease after that, which is as long as a node goes on
// that cannot say anything, nobody is told that a session is not there, and none is
// ended because its node has no lease, and none gets a sandbox, since it is not known how
// many there are. Nodes put their sessions back in that time. A session that was told to be lost stays
// lost: who ended it remembers it, and ends it again in the next epoch.
//
// This package must not decide anything that is not in the contract of
// cove.Directory: it knows no policy, starts and ends no sandbox, and must not
// keep what a sandbox can make large, such as archives and output.
package redis
