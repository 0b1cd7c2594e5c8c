//go:build linux

package agent

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// statBlock is the unit in which stat(2) counts blocks.
const statBlock = 512

// content writes what is in a file, without its holes.
func (p *packer) content(f *os.File, st *unix.Stat_t) error {
	if st.Size <= st.Blocks*statBlock {
		return p.w.Copy(f, st.Size)
	}
	parts, err := partsOf(int(f.Fd()), st.Size)
	if err != nil {
		return err
	}
	if len(parts) == 1 && parts[0] == (protocol.Part{Length: st.Size}) {
		return p.w.Copy(f, st.Size)
	}
	if err := parts.Write(p.w); err != nil {
		return err
	}
	for _, one := range parts {
		if err := p.w.Copy(io.MultiReader(io.NewSectionReader(f, one.Offset, one.Length), zeros{}), one.Length); err != nil {
			return err
		}
	}
	return nil
}

// zeros is what a part has that was cut off meanwhile.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// partsOf finds what of a file is not a hole. Where there are too many parts, the
// smallest holes count as content.
func partsOf(fd int, size int64) (protocol.Parts, error) {
	var parts protocol.Parts
	least := int64(1)
	for at := int64(0); at < size; {
		start, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole up to the end
		}
		if err != nil {
			return nil, err
		}
		end, err := unix.Seek(fd, start, unix.SEEK_HOLE)
		if err != nil && !errors.Is(err, unix.ENXIO) {
			return nil, err
		}
		if err != nil || end > size {
			end = size
		}
		if start >= end {
			break
		}
		parts = join(parts, protocol.Part{Offset: start, Length: end - start}, least)
		for len(parts) > protocol.MaxParts {
			least *= 2
			all := parts
			parts = parts[:0]
			for _, one := range all {
				parts = join(parts, one, least)
			}
		}
		at = end
	}
	return parts, nil
}

// join adds a part, to the last one if the hole between them is smaller than
// least.
func join(parts protocol.Parts, one protocol.Part, least int64) protocol.Parts {
	if n := len(parts); n > 0 {
		last := &parts[n-1]
		if one.Offset-(last.Offset+last.Length) < least {
			last.Length = one.Offset + one.Length - last.Offset
			return parts
		}
	}
	return append(parts, one)
}
