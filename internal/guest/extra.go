//go:build linux

package guest

import (
	"archive/tar"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// The PAX records of what a tar has no place for. Attributes are where other
// programs have them; one whose name PAX cannot hold is in a record of our own.
// So are bits of a mode that nobody should get who unpacks what a sandbox made.
const (
	recordAttr    = "SCHILY.xattr."
	recordOwnAttr = "COVE.xattr."
	recordMode    = "COVE.mode"
	userAttr      = "user."
)

// attr adds an attribute.
func (n *upcoming) attr(b []byte) error {
	a, err := protocol.DecodeAttr(b)
	if n.attrBytes += len(a.Name) + len(a.Value); err != nil || n.attrBytes > protocol.MaxAttrs || !strings.HasPrefix(a.Name, userAttr) {
		return protocol.ErrMalformed
	}
	if n.attrs == nil {
		n.attrs = map[string]string{}
	}
	if strings.ContainsAny(a.Name, "=\x00") {
		n.attrs[recordOwnAttr+strings.NewReplacer("%", "%25", "=", "%3D", "\x00", "%00").Replace(a.Name)] = a.Value
		return nil
	}
	n.attrs[recordAttr+a.Name] = a.Value
	return nil
}

// records returns the PAX records of an entry.
func (n *upcoming) records() map[string]string {
	kind, mode := n.Mode&unix.S_IFMT, n.Mode&0o7777
	usual := mode&0o777 | 0o600
	if kind == unix.S_IFDIR {
		usual |= 0o100
	}
	if n.Hard || kind == unix.S_IFLNK || kind != unix.S_IFIFO && mode == usual {
		return n.attrs
	}
	all := map[string]string{recordMode: strconv.FormatUint(uint64(mode), 8)}
	maps.Copy(all, n.attrs)
	return all
}

// exactMode returns the mode that an archive of ours has for an entry.
func exactMode(h *tar.Header) (mode uint32, ours bool, err error) {
	text := h.PAXRecords[recordMode]
	if text == "" {
		return 0, false, nil
	}
	v, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, false, cove.Wrap(cove.Invalid, err, "archive: the mode of %.200q is none", h.Name)
	}
	return uint32(v), true, nil
}

// sendAttrs sends the attributes of an entry that are a user's. Others belong to
// the machine where the archive was made.
func sendAttrs(w *protocol.RecordWriter, h *tar.Header) error {
	total := 0
	for _, key := range slices.Sorted(maps.Keys(h.PAXRecords)) {
		name, ok := strings.CutPrefix(key, recordAttr)
		if !ok {
			if name, ok = strings.CutPrefix(key, recordOwnAttr); !ok {
				continue
			}
			name = strings.NewReplacer("%25", "%", "%3D", "=").Replace(name)
		}
		if !strings.HasPrefix(name, userAttr) || strings.IndexByte(name, 0) >= 0 {
			continue
		}
		value := h.PAXRecords[key]
		total += len(name) + len(value)
		if len(name) > protocol.MaxAttrName || len(value) > protocol.MaxAttr || total > protocol.MaxAttrs {
			return cove.Errorf(cove.Invalid, "archive: the attributes of %.200q are too large", h.Name)
		}
		if err := w.Write(protocol.RecordAttr, protocol.Attr{Name: name, Value: value}.Encode()); err != nil {
			return broken(err)
		}
	}
	return nil
}
