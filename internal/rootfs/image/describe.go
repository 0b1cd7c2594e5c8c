package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/cove-sandbox/cove"
)

// mostLayers bounds the layers of an image, and mostDepth lists in lists.
const (
	mostLayers = 255
	mostDepth  = 4
)

// layer is one layer of an image.
type layer struct {
	name string // of the part
	blob string // digest of the part as it is; "" if nothing says it
	size int64  // of the part; < 0 if nothing says it
	diff string // digest of the tar
}

// description is what an image says about itself.
type description struct {
	config config
	layers []layer
}

// config is the part of an image's configuration that matters here.
type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Env []string `json:"Env"`
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// descriptor points to a part of a layout.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

var goodDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// describe reads what an image is, in whichever form it is.
func describe(s source) (description, error) {
	r, err := s.open("manifest.json")
	if err == nil {
		_ = r.Close()
		return describeArchive(s)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return description{}, missing("manifest.json", err)
	}
	return describeLayout(s)
}

// describeArchive reads the form of docker save.
func describeArchive(s source) (d description, err error) {
	var list []struct {
		Config string
		Layers []string
	}
	if err := parse(s, "manifest.json", &list); err != nil {
		return d, err
	}
	if len(list) != 1 {
		return d, cove.Errorf(cove.Invalid, "the archive has %d images", len(list)).Remedy("save one image: docker save -o FILE IMAGE")
	}
	data, err := text(s, list[0].Config)
	if err != nil {
		return d, err
	}
	stem := strings.TrimSuffix(path.Base(list[0].Config), ".json")
	if named := "sha256:" + stem; goodDigest.MatchString(named) && digest(data) != named {
		return d, different(list[0].Config)
	}
	if err := decode(data, list[0].Config, &d.config); err != nil {
		return d, err
	}
	for _, name := range list[0].Layers {
		d.layers = append(d.layers, layer{name: name, size: -1})
	}
	return d, d.check()
}

// describeLayout reads an OCI layout.
func describeLayout(s source) (d description, err error) {
	var head struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := parse(s, "oci-layout", &head); err != nil {
		return d, err
	}
	if !strings.HasPrefix(head.Version, "1.") {
		return d, cove.Errorf(cove.Unsupported, "the layout has version %.20q, and this build knows 1", head.Version)
	}
	var m manifest
	if err := parse(s, "index.json", &m); err != nil {
		return d, err
	}
	for depth := 0; len(m.Layers) == 0 && m.Config == nil; depth++ {
		next, err := m.choose()
		if err != nil {
			return d, err
		}
		if depth >= mostDepth {
			return d, cove.Errorf(cove.Invalid, "the layout's lists of images lead from one to the next")
		}
		m = manifest{}
		if err := blob(s, next, &m); err != nil {
			return d, err
		}
	}
	if m.Config == nil {
		return d, cove.Errorf(cove.Invalid, "the image has no configuration")
	}
	if err := blob(s, *m.Config, &d.config); err != nil {
		return d, err
	}
	for _, l := range m.Layers {
		if !goodDigest.MatchString(l.Digest) {
			return d, unknown(l.Digest)
		}
		d.layers = append(d.layers, layer{name: blobName(l.Digest), blob: l.Digest, size: l.Size})
	}
	return d, d.check()
}

// manifest is an image, or a list of them.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Config    *descriptor  `json:"config"`
	Layers    []descriptor `json:"layers"`
}

// choose picks the image for this machine out of a list.
func (m manifest) choose() (descriptor, error) {
	var found []descriptor
	for _, d := range m.Manifests {
		if p := d.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return descriptor{}, cove.Errorf(cove.Invalid, "the layout has %d images for linux on %s", len(found), runtime.GOARCH).Remedy("make a layout with one")
	}
	return found[0], nil
}

// check wants an image that can run here and whose layers have digests.
func (d *description) check() error {
	if c := d.config; c.OS != "linux" || c.Architecture != runtime.GOARCH {
		return cove.Errorf(cove.Invalid, "the image is for %.20s on %.20s, and this machine is linux on %s", c.OS, c.Architecture, runtime.GOARCH)
	}
	if len(d.layers) == 0 || len(d.layers) > mostLayers || len(d.layers) != len(d.config.RootFS.DiffIDs) {
		return cove.Errorf(cove.Invalid, "the image has %d layers and %d digests of them; from 1 to %d can be read", len(d.layers), len(d.config.RootFS.DiffIDs), mostLayers)
	}
	for i, id := range d.config.RootFS.DiffIDs {
		if !goodDigest.MatchString(id) {
			return unknown(id)
		}
		d.layers[i].diff = id
	}
	return nil
}

func parse(s source, name string, to any) error {
	data, err := text(s, name)
	if err != nil {
		return err
	}
	return decode(data, name, to)
}

func decode(data []byte, name string, to any) error {
	if err := json.Unmarshal(data, to); err != nil {
		return cove.Wrap(cove.Invalid, err, "the image's %.120q is not the JSON that belongs there", name)
	}
	return nil
}

// blob reads a description and compares its digest.
func blob(s source, d descriptor, to any) error {
	if !goodDigest.MatchString(d.Digest) {
		return unknown(d.Digest)
	}
	name := blobName(d.Digest)
	data, err := text(s, name)
	if err != nil {
		return err
	}
	if int64(len(data)) != d.Size || digest(data) != d.Digest {
		return different(name)
	}
	return decode(data, name, to)
}

func blobName(digest string) string {
	return "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:")
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func unknown(text string) error {
	return cove.Errorf(cove.Invalid, "the image has the digest %.80q, which is not one of sha256", text)
}

func different(name string) error {
	return cove.Errorf(cove.Invalid, "the digest of the image's %.120q differs from what the image says: it was damaged or exchanged", name).Remedy("fetch it again")
}
