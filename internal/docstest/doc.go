// Package docstest keeps the documentation true: its test runs every sh block
// of README.md, docs/*.md and skills/*/SKILL.md as it is written, against the real cove, and
// compares what comes out with the output block below it.
//
//	```sh                     is run
//	```sh skip=<reason>       is not run, and the report says why
//	```sh needs=<engine>      is run where the tests have that engine: docker, duckdb, gvisor, sdks or cluster
//	```js needs=sdks          is run by Node, with E2B's SDK; so is python, by Python
//	```output                 is what the block above must print
//	```go examples/x/y.go     is a part of that file, with … for what is left out
//	```go                     is Go that parses
//	```text, ```console, …    are only read by people
//
// The blocks of one page run in order in one bash, stopped by the first command
// that fails, so that a later block can use what an earlier one made. HOME,
// COVE_HOME and the working directory are empty, the environment is cleared,
// and whatever a page leaves running is ended. A page that needs a cluster finds bin,
// scripts and deploy in its directory, as in a checkout. In an output block … stands for any text, a
// line with … alone for any number of lines, and the width of white space does
// not matter.
//
// This package must not know any command of cove: what is right is said by the
// documentation alone.
package docstest
