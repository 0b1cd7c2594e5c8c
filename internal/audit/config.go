package audit

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config says where a journal is and how it is kept. Zero fields other than Dir
// take their defaults.
type Config struct {
	Dir  string // the folder of the segments; made if it is missing
	Node string // written into every line

	KeyFile    string // default: Dir with ".key" at its end
	AnchorFile string // default: Dir with ".anchor" at its end; should be outside Dir

	SegmentBytes cove.Bytes // when to begin a new segment; default 64 MiB
	// Reserve is set aside in the file that is written, for lines when the disk is full;
	// see [Journal.Room]. Default 1 MiB, and none for a Brief journal.
	Reserve cove.Bytes

	SyncInterval   time.Duration // how long a line may wait for its sync; default 200 ms
	AnchorInterval time.Duration // how long the anchor may wait for its own; default 10 s

	// Brief is for a journal that many processes have one after the other, each
	// for a moment, and that must not make any of them slow. Open and Close then
	// leave to others what they sync themselves otherwise: the first durable line
	// takes along what the process before left, and of a process that wrote
	// durable lines those after the last one are left to the kernel, which brings
	// them to the disk by itself within its own time, and to the process after it.
	Brief bool

	// Logger is told what Open cut off. The default throws it away.
	Logger *slog.Logger

	boot string // this start of the machine
}

const (
	defaultSegmentBytes   = 64 * cove.MiB
	defaultReserve        = cove.MiB
	defaultSyncInterval   = 200 * time.Millisecond
	defaultAnchorInterval = 10 * time.Second

	// tornShown bounds what the log shows of a torn line.
	tornShown = 256

	// tellInterval is how long the anchor may lag behind the lines of a process
	// that is killed.
	tellInterval = 10 * time.Millisecond

	// maxLine bounds a line with its newline, for writers and for readers.
	maxLine = 1 << 20
)

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Dir == "":
		return c, cove.InvalidField("journal.dir", "is empty; name the folder of the journal")
	case c.SegmentBytes < 0:
		return c, cove.InvalidField("journal.segment_bytes", "%d is negative", int64(c.SegmentBytes))
	case c.Reserve < 0:
		return c, cove.InvalidField("journal.reserve", "%d is negative", int64(c.Reserve))
	case c.SyncInterval < 0:
		return c, cove.InvalidField("journal.sync_interval", "%s is negative", c.SyncInterval)
	case c.AnchorInterval < 0:
		return c, cove.InvalidField("journal.anchor_interval", "%s is negative", c.AnchorInterval)
	}
	c.Dir = filepath.Clean(c.Dir)
	if c.KeyFile == "" {
		c.KeyFile = c.Dir + ".key"
	}
	if c.AnchorFile == "" {
		c.AnchorFile = c.Dir + ".anchor"
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = defaultSegmentBytes
	}
	if c.Reserve == 0 && !c.Brief {
		c.Reserve = defaultReserve
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	if c.AnchorInterval == 0 {
		c.AnchorInterval = defaultAnchorInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.boot == "" {
		c.boot = bootID()
	}
	return c, nil
}
