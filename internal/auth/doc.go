// Package auth turns the secret that a request shows into the principal that
// it acts for, and keeps each key within its own rate and number of requests
// at once.
//
// A secret that is missing, unknown, revoked or expired gets one and the same
// answer. Keys are looked up on every request, so that a revocation counts from
// the next one on, and [Watch] ends what is under way then; [Remembering] spares
// the store most of those looks.
//
// The package must not decide what a principal may do (policy does), must not
// write a secret anywhere but into the one file of [Bootstrap], and must not
// know HTTP beyond the headers that carry a secret.
package auth
