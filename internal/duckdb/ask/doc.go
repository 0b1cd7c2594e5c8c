// Package ask is what cove and its DuckDB executable, cmd/cove-duckdb, say to each
// other. Both ends import it, so it imports nothing but the standard library; it
// runs nothing and decides nothing but what a message may be.
//
// # Frames
//
// The executable reads requests from its standard input and writes answers to its
// standard output. Each is a frame: its length as eight decimal digits, and as many
// bytes of JSON, at most [MaxFrame]. There is nothing between frames. A frame that
// cannot be read ends the executable with status 2, and so does the end of its
// input with status 0. What it writes to its standard error is for people, and
// short.
//
// # Requests
//
// A [Request] has an ID above that of the one before it, a verb, and what the verb
// needs in the field of that name. Requests are served one after another, each by
// one [Answer] with the same ID, which has a [Fault] or what was asked for. A
// request that comes while another is served waits; more than [MaxWaiting] end the
// executable.
//
//	open       once, and first: how much memory and how many threads. Nothing else
//	           is understood before it.
//	describe   what is in files: columns, rows, samples. Only before load.
//	load       once: reads files into tables and closes the door behind them. From
//	           then on the engine opens no file, loads no extension and takes no
//	           setting. A file that cannot be read is the problem of its table, and
//	           the others are loaded. No table at all only closes the door.
//	query      only after load: runs one SELECT, and answers with its rows.
//	frame      only after load: the same, but the rows are written to a file that
//	           Python reads as a frame.
//	parse      at any time: the syntax tree of a text, as the engine's parser
//	           writes it; nothing of it runs.
//	functions  at any time: every function that the engine has.
//	stop       at any time, served at once: ends the request with the ID that it
//	           names, which then answers with the fault [Stopped], unless it was
//	           faster. It has no answer of its own. An engine in the middle of one
//	           long step hears it late or never: who asked must be ready to end the
//	           process.
//
// Nothing but one SELECT is run by query and frame: not two, not a statement of
// another kind, whatever has been decided about it before. DESCRIBE, SUMMARIZE and
// SHOW count as SELECT for the engine.
//
// # Names
//
// A table is in a schema, which is the name of its dataset, or main where there is
// none. A query names the schema in which it looks for tables that it does not
// qualify. Names differ by more than upper and lower case.
//
// # Values
//
// A row is an array in the order of the columns.
//
//	integers of every width            number, with all digits
//	DECIMAL(p,s)                       number where p ≤ 15, else string with all digits
//	FLOAT, DOUBLE                      shortest number, or "NaN", "Infinity", "-Infinity"
//	DATE                               "2020-01-02"
//	TIME, TIMETZ                       "01:02:03.5", "01:02:03+02:00"
//	TIMESTAMP, _S, _MS, _NS            "2020-01-02T03:04:05.678"
//	TIMESTAMPTZ                        the same in UTC, with a Z at the end
//	a date or timestamp without end    "infinity", "-infinity"
//	INTERVAL                           "P1Y2M3DT4H5M6.7S", and "PT0S"
//	BOOLEAN, NULL                      true, false, null
//	VARCHAR, ENUM, UUID                string
//	BLOB, BIT                          base64, and a string of 0 and 1
//	LIST, ARRAY                        array
//	STRUCT                             object, in the order of its fields
//	MAP                                array of {"key": …, "value": …}
//	UNION                              the value
//	JSON                               the document, as it is written in the table
//
// A text that is no valid UTF-8 cannot be: the engine refuses it. A year before 1 is
// written as the engine writes it, "0044-03-15 (BC)".
//
// # Files for Python
//
// What frame writes is an archive of NumPy arrays (npz, not compressed), which
// numpy.load reads with allow_pickle=False. The array "head" holds bytes, a JSON
// object {"rows": n, "batches": m, "columns": [{"name", "type", "kind"}, …]}. The rows
// are in batches, of which there is one at least. Batch b of column i has "i.b.data",
// and "i.b.null" where a value in it is NULL: an array of bool. By kind, data is
//
//	number     one number or bool for each row, 0 where it is NULL
//	time       datetime64 in days, seconds, milliseconds, microseconds or nanoseconds;
//	           one without end is NULL
//	zoned      the same, in UTC
//	text       bytes, UTF-8; "i.b.ends" has for each row where in them its text ends
//	bytes      the same with bytes of any kind
//	integer    the same, with integers in decimal digits that may need more than 64 bits
//	decimal    the same, with decimal numbers
//	json       the same, with a JSON value as above
//
// [FramePython] is the source of a reader for Python 3 with pandas from 1.5 on.
package ask
