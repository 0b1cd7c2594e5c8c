// Package datarun answers questions to data: it finds the tables that a question may
// see, has the question judged where no code of a caller ever runs, and has it
// answered in a sandbox, by DuckDB or by Python.
//
//	sources   which files are there for a question, by dataset, request and grant
//	judge     what policy makes of it
//	sql       the way of a statement
//	python    the way of code
//	describe  what is in the files of a dataset
//	fault     which type of error something is
//
// A question that fails is an answer. The package opens no sandbox but those that its
// host lends, reads no data but to hand it to one that cannot have it mounted, and
// must not know a provider.
package datarun
