// Package duck is DuckDB as this program uses it: a database in memory, statements
// that are SELECT and alone, and the rows that they have, read as they come.
//
// It must not know of requests and answers, and decides nothing about what may be
// asked: only that what Select runs is one SELECT. It has the program's unsafe code:
// the engine's vectors are memory of C++, which is read here and nowhere else.
package duck
