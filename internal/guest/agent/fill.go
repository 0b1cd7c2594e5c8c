//go:build linux

package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// filling writes the content of one file.
type filling struct {
	u    *unpacker
	f    *os.File
	size int64

	// The record at hand.
	kind protocol.RecordKind
	b    []byte
}

func (f *filling) next() (err error) {
	if f.kind, f.b, err = f.u.in.Next(); err != nil {
		return &failed{protocol.ReasonBroken, unix.EPIPE, ""}
	}
	return nil
}

// fill writes all of the content, and stops at the first record that is none.
func (f *filling) fill() error {
	parts, err := f.parts()
	if err != nil {
		return err
	}
	for _, one := range parts {
		if _, err := f.f.Seek(one.Offset, 0); err != nil {
			return err
		}
		if err := f.part(one.Length); err != nil {
			return err
		}
	}
	if f.kind == protocol.RecordData {
		return &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
	}
	return nil
}

// part writes so many bytes of data. A record may have more than one part's.
func (f *filling) part(left int64) error {
	for left > 0 {
		if f.kind != protocol.RecordData {
			return &failed{protocol.ReasonBroken, unix.EPIPE, ""}
		}
		n := min(left, int64(len(f.b)))
		if _, err := f.f.Write(f.b[:n]); err != nil {
			return err
		}
		left -= n
		if f.b = f.b[n:]; len(f.b) == 0 {
			if err := f.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts takes where the content goes, and makes the holes between.
func (f *filling) parts() (protocol.Parts, error) {
	if f.kind != protocol.RecordParts {
		return protocol.Parts{{Length: f.size}}, nil
	}
	var all protocol.Parts
	for f.kind == protocol.RecordParts {
		some, err := protocol.DecodeParts(f.b)
		if all = append(all, some...); err != nil || len(all) > protocol.MaxPartsIn {
			return nil, &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
		}
		if err := f.next(); err != nil {
			return nil, err
		}
	}
	if _, ok := all.Total(f.size); !ok {
		return nil, &failed{protocol.ReasonBroken, unix.EBADMSG, ""}
	}
	return all, f.f.Truncate(f.size)
}
