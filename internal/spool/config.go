package spool

import (
	"os"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Config says how much of a program's output is kept, and where. Zero sizes take
// their defaults.
type Config struct {
	// Root is the folder of the file, and must stay open as long as the log is
	// used. Without it nothing is kept beyond MemoryBytes.
	Root *os.Root
	// Name of the file in Root: up to 128 letters, digits and "._-", with no dot
	// at its start. It must be new.
	Name string

	MemoryBytes cove.Bytes // before a file is made; default 64 KiB
	MaxBytes    cove.Bytes // kept in all; default 16 MiB
	Budget      cove.Bytes // of one stream in a Summary; default 20 KiB, at least 64 bytes

	// Resize is told the size that the file is about to get, and 0 when it is removed.
	// An error refuses to make it larger. must says that only what is in memory yet is
	// to be added, once, at the end. It must not call the log.
	Resize func(size int64, must bool) error

	// OnChunk is called in order with all that is written, also with what is not
	// kept. It owns the chunk. While it blocks, so do the writers; readers do not.
	// It must not call Close, Persist or Remove.
	OnChunk func(cove.Chunk)

	// Limit is how much may be written to both streams together; 0 is no limit.
	// OnLimit is called once, by the writer that passes it, and must not wait for
	// that writer. What is written afterwards is treated as before.
	Limit   cove.Bytes
	OnLimit func()
}

const (
	defaultMemoryBytes = 64 * cove.KiB
	defaultMaxBytes    = 16 * cove.MiB
	defaultBudget      = 20 * cove.KiB
	minBudget          = 64
)

func (c Config) withDefaults() Config {
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = defaultMemoryBytes
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Budget <= 0 {
		c.Budget = defaultBudget
	}
	c.Budget = max(c.Budget, minBudget)
	return c
}

const maxNameLen = 128

// checkName lets through what is safe as a part of a file's name.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
	})
	if bad || name == "" || name[0] == '.' || len(name) > maxNameLen {
		return cove.InvalidField("output_id", "%.200q is not the name of kept output", name)
	}
	return nil
}
