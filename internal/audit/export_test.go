package audit

import "github.com/cove-sandbox/cove"

// File is what a journal needs of the segment it writes.
type File = file

// OpenWith is Open with something between the journal and its files.
func OpenWith(cfg Config, wrap func(File) File) (*Journal, error) { return open(cfg, wrap) }

// OnBoot is c on a machine whose start has this name.
func (c Config) OnBoot(id string) Config {
	c.boot = id
	return c
}

// MaxLine bounds a line.
const MaxLine = maxLine

// EncodeEvent returns e as a line without its newline, under a key of zeros.
func EncodeEvent(e *cove.Event) []byte {
	line, _ := newSealer(make([]byte, 32)).seal(appendBody(nil, e, 0, noSum))
	return line
}

// DecodeEvent reads a line and reports whether its sum is right under that key.
func DecodeEvent(line []byte) (e cove.Event, genuine bool, err error) {
	r, err := decodeLine(line)
	if err != nil {
		return cove.Event{}, false, err
	}
	return r.Event, newSealer(make([]byte, 32)).sum(r.body) == r.sum, nil
}

// SeqOf reads the number of a line.
func SeqOf(line []byte) int64 { return seqOf(line) }

// CloseAnchor makes every later write of the anchor fail.
func (j *Journal) CloseAnchor() error { return j.committer.anchor.Close() }
