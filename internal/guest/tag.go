//go:build linux

package guest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// userClass begins the names of the attributes that are users' own.
const userClass = "user."

// metaOf returns the attributes that are text.
func metaOf(attrs []protocol.Attr) map[string]string {
	var meta map[string]string
	for _, a := range attrs {
		key, own := strings.CutPrefix(a.Name, userClass)
		if !own || key == "" || !utf8.ValidString(key) || !utf8.ValidString(a.Value) {
			continue
		}
		if meta == nil {
			meta = map[string]string{}
		}
		meta[key] = a.Value
	}
	return meta
}

// Tag implements [cove.Files].
func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	if err := cove.CheckMeta(meta); err != nil {
		return err
	}
	abs, err := f.c.opts.Load().name(name)
	if err != nil {
		return err
	}
	if f.c.version < protocol.Owners {
		return cove.Errorf(cove.Unsupported, "this sandbox's agent is older than attributes of files; open the sandbox anew")
	}
	t := protocol.Tag{Name: abs}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		t.Attrs = append(t.Attrs, protocol.Attr{Name: userClass + key, Value: meta[key]})
	}
	a, err := f.c.call(ctx, protocol.KindTag, t.Encode())
	if err != nil {
		return err
	}
	if errors.Is(syscall.Errno(a.Errno), syscall.ENOTSUP) {
		return cove.Wrap(cove.Unsupported, syscall.ENOTSUP, "%.200q: the file system there has no attributes; keep the file in the workspace", name)
	}
	return fault(a.Reply, name)
}
