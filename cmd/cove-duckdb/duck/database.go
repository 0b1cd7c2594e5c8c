package duck

import (
	"fmt"

	c "github.com/duckdb/duckdb-go-bindings"
)

// Database is one in memory. It lasts as long as the process.
type Database struct {
	handle c.Database
}

// Catalog is the name of the database within the engine.
const Catalog = "memory"

// Options say what the engine may use.
type Options struct {
	Memory  int64 // bytes
	Threads int
}

// Open makes a database that loads no extension, keeps nothing outside of memory and
// says what went wrong in a form that is read here.
func Open(o Options) (*Database, error) {
	var config c.Config
	if c.CreateConfig(&config) != c.StateSuccess {
		return nil, &Error{Type: "Internal", Message: "the engine has no room for its settings"}
	}
	defer c.DestroyConfig(&config)
	for _, setting := range [][2]string{
		{"memory_limit", fmt.Sprintf("%dB", o.Memory)},
		{"threads", fmt.Sprint(o.Threads)},
		{"temp_directory", ""},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"allow_unsigned_extensions", "false"},
		{"allow_persistent_secrets", "false"},
		{"errors_as_json", "true"},
		{"max_expression_depth", "250"}, // what is deeper takes minutes, or more than the stack
	} {
		if c.SetConfig(config, setting[0], setting[1]) != c.StateSuccess {
			return nil, &Error{Type: "Internal", Message: "the engine does not take its setting " + setting[0]}
		}
	}
	db, message := &Database{}, ""
	if c.OpenExt(":memory:", &db.handle, config, &message) != c.StateSuccess {
		return nil, parseError(message)
	}
	return db, nil
}

// Version is the engine's, "v1.5.5".
func Version() string { return c.LibraryVersion() }

// Conn is a connection. It runs one statement at a time; Interrupt may be called
// beside it.
type Conn struct {
	handle c.Connection
}

// Connect makes a connection, which lasts as long as the database.
func (db *Database) Connect() (*Conn, error) {
	conn := &Conn{}
	if c.Connect(db.handle, &conn.handle) != c.StateSuccess {
		return nil, &Error{Type: "Internal", Message: "the engine gives no connection"}
	}
	return conn, nil
}

// Interrupt asks the engine to end what runs on the connection. It is lost on a
// statement that is only about to start.
func (conn *Conn) Interrupt() { c.Interrupt(conn.handle) }

// Exec runs a statement of ours and has no use for its rows.
func (conn *Conn) Exec(sql string) error {
	var result c.Result
	defer c.DestroyResult(&result)
	if c.Query(conn.handle, sql, &result) != c.StateSuccess {
		return parseError(c.ResultError(&result))
	}
	return nil
}
