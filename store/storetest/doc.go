// Package storetest is the contract of cove.Store as tests. A store calls Run,
// and RunDurable when it outlives the process:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) cove.Store { return memory.New() })
//	}
//
// Beyond what the comments in package cove say, it settles these points:
//
//   - A record without an id is Invalid, and so is one whose id, tenant, user,
//     thread, project or session is not UTF-8. Elsewhere in a record, such as in
//     the output of a run, each byte that is not UTF-8 becomes U+FFFD.
//   - A version that is not current is Conflict also when there is no record.
//   - PutKey, PutTenant, PutSnapshot, PutVolume and PutRun insert or replace. A key with
//     the hash of another one is Conflict.
//   - CPU time is counted for tenants that have no record, and PutTenant does not
//     change it.
//   - Every list comes by id. One that is changed while somebody reads it still
//     yields each record that was there all along, once. The reader may write.
//   - A claim has expired when now is its ExpiresAt or later, and may be
//     forgotten from then on. SetClaim on a claim that is not there is NotFound.
//   - A context that has ended means Canceled or Timeout, and nothing was done.
//   - After Close, which may be called twice, every method is Unavailable.
//
// This package must know no store, and must not ask one for more than package
// cove and this comment promise.
package storetest
