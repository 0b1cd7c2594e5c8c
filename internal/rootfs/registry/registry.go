// Package registry fetches images from registries, as layouts that package image
// can unpack. Only it knows how registries are talked to. It must not unpack or
// run anything, and what it wrote is checked by who reads it.
package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/cove-sandbox/cove"
)

// Bounds of what is fetched.
const (
	mostLayers = 255
	answerTime = time.Minute // until a registry begins to answer
)

// Fetch writes the image that a registry has for this machine into dir, which is
// empty, as an OCI layout. ref is a name such as registry.example.org/tools/alpine:3.22; most
// bounds the bytes of its layers as they travel. Credentials are those that docker
// login left, if any.
func Fetch(ctx context.Context, ref, dir string, most cove.Bytes) error {
	// A registry on this very machine may do without encryption, as with Docker.
	from, err := name.ParseReference(ref)
	if err != nil {
		return cove.Wrap(cove.Invalid, err, "%.120q is not the name of an image", ref).Remedy("write it as registry.example.org/tools/alpine:3.22")
	}
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.ResponseHeaderTimeout = answerTime
	defer network.CloseIdleConnections()
	img, err := remote.Image(from, remote.WithContext(ctx), remote.WithTransport(network), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return fault(ctx, ref, err)
	}
	if err := bounded(img, most); err != nil {
		return fault(ctx, ref, err)
	}
	to, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = to.AppendImage(img)
	}
	return fault(ctx, ref, err)
}

// bounded looks at what an image announces; layers with more bytes than that are
// cut off by who fetches them.
func bounded(img v1.Image, most cove.Bytes) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	if len(m.Layers) > mostLayers {
		return cove.Errorf(cove.Invalid, "the image has %d layers; at most %d can be read", len(m.Layers), mostLayers)
	}
	left := int64(most)
	for _, l := range m.Layers {
		if left -= l.Size; l.Size < 0 || left < 0 {
			return cove.Errorf(cove.Exhausted, "the image is larger than a template may be, which is %s", most)
		}
	}
	return nil
}

// fault says what went wrong with a registry.
func fault(ctx context.Context, ref string, err error) error {
	if _, ours := errors.AsType[*cove.Error](err); err == nil || ours {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if said, ok := errors.AsType[*transport.Error](err); ok {
		switch said.StatusCode {
		case http.StatusNotFound:
			return cove.Wrap(cove.NotFound, err, "the registry has no image %.120s", ref)
		case http.StatusUnauthorized, http.StatusForbidden:
			return cove.Wrap(cove.Denied, err, "the registry does not give %.120s to us", ref).Remedy("check the name; sign in with docker login")
		}
		return cove.Wrap(cove.Unavailable, err, "the registry answered %d for %.120s", said.StatusCode, ref).Remedy("try again later")
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return cove.Wrap(cove.Unavailable, err, "the registry of %.120s cannot be reached", ref).Remedy("check the name and the network")
	}
	return cove.Wrap(cove.Unavailable, err, "the image %.120s cannot be fetched", ref).Remedy("try again; the registry may be damaged")
}
