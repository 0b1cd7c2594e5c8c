//go:build linux

package docker_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/docker"
)

// TestFaults is about what engines answer.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		code         cove.Code
		text, remedy string
	}{
		"an error of ours":         {cove.Errorf(cove.Denied, "no"), cove.Denied, "no", ""},
		"no room":                  {errors.New("write /x: no space left on device"), cove.Exhausted, "the disk of the Docker engine is full", "docker system prune"},
		"an image that is gone":    {fmt.Errorf("No such image: x: %w", errdefs.ErrNotFound), cove.Unavailable, "image", "docker build"},
		"the same of Podman":       {errors.New("x: image not known"), cove.Unavailable, "image", "docker build"},
		"a container that is gone": {fmt.Errorf("No such container: x: %w", errdefs.ErrNotFound), cove.NotFound, "somebody else removed it", "open a new sandbox"},
		"another state":            {fmt.Errorf("Container x is paused: %w", errdefs.ErrConflict), cove.Conflict, "in another state", "try again"},
		"an old engine":            {errors.New("client version 1.56 is too new. API version 1.41 is too old"), cove.Unavailable, "another version", "20.10"},
		"anything else":            {errors.New("OCI runtime create failed"), cove.Unavailable, "the Docker engine cannot do it", "log"},
		"a page":                   {errors.New("invalid character '<' looking for beginning of value"), cove.Unavailable, "is not a Docker engine", "DOCKER_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			err := docker.Fault("unix:///x", c.err)
			if cove.CodeOf(err) != c.code || !strings.Contains(cove.MessageOf(err), c.text) || !strings.Contains(cove.RemedyOf(err), c.remedy) {
				t.Errorf("%v, remedy %q; want code %s, %q and %q", err, cove.RemedyOf(err), c.code, c.text, c.remedy)
			}
		})
	}
	if err := docker.Fault("unix:///x", nil); err != nil {
		t.Errorf("nothing gives %v", err)
	}
}

// TestDoorway is about the pieces in which an engine sends two streams.
func TestDoorway(t *testing.T) {
	for name, c := range map[string]struct {
		sent, read, said string
		broken           bool
	}{
		"two pieces":              {"\x01\x00\x00\x00\x00\x00\x00\x02ab\x01\x00\x00\x00\x00\x00\x00\x01c", "abc", "", false},
		"a complaint between":     {"\x01\x00\x00\x00\x00\x00\x00\x01a\x02\x00\x00\x00\x00\x00\x00\x03no\n\x01\x00\x00\x00\x00\x00\x00\x01b", "ab", "no", false},
		"an empty piece":          {"\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a", "a", "", false},
		"a long complaint":        {"\x02\x00\x00\x00\x00\x00\x20\x00" + strings.Repeat("x", 8192) + "\x01\x00\x00\x00\x00\x00\x00\x01a", "a", strings.Repeat("x", 4096), false},
		"a stream that is none":   {"\x09\x00\x00\x00\x00\x00\x00\x01a", "", "", true},
		"half a header":           {"\x01\x00\x00", "", "", true},
		"half of a complaint":     {"\x02\x00\x00\x00\x00\x00\x00\x09ab", "", "ab", false},
		"plain text of an engine": {"OCI runtime exec failed", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			ended := 0
			d, said := docker.Doorway(ours, func() { ended++ })
			go func() {
				_, _ = io.WriteString(theirs, c.sent)
				_ = theirs.Close()
			}()
			got, err := io.ReadAll(d)
			if string(got) != c.read || said() != c.said || (err != nil) != c.broken || ended != 1 {
				t.Errorf("read %q and %.20q with %v, ended %d times; want %q, %.20q, broken %t", got, said(), err, ended, c.read, c.said, c.broken)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
