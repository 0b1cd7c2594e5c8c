//go:build linux && !lean

package guest

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"os"

	"github.com/cove-sandbox/cove"
)

// Image returns an agent's executable for a place that has none of this machine's
// files, such as the image of a container, and a name for it that no other has. It
// must be called cove-agent there. Not every build has one: a plain one is its own
// agent, and if it is linked to this machine's libraries it runs nowhere else.
func Image() (image []byte, id string, err error) { return portable(lean, imageID, Self) }

func portable(lean []byte, id, self string) ([]byte, string, error) {
	if len(lean) > 0 && id != "" {
		return lean, id, nil
	}
	image, err := os.ReadFile(self) //nolint:gosec // our own
	if err != nil {
		return nil, "", cove.Wrap(cove.Internal, err, "this executable cannot be read")
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, "", cove.Wrap(cove.Internal, err, "this executable cannot be read")
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, "", cove.Errorf(cove.Unavailable, "this build has no agent that runs in an image: it needs this machine's libraries").
				Remedy("use the executable that make build makes, or build with CGO_ENABLED=0")
		}
	}
	sum := sha256.Sum256(image)
	const digits = 8
	return image, hex.EncodeToString(sum[:digits]), nil
}
