package main

import (
	"context"
	"os"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/inprocess"
)

// platform is what both modes give.
type platform interface {
	cove.Platform
	Close() error
}

// local is the platform in this process. Its settings are those of cove serve,
// from the environment.
func local(ctx context.Context) (platform, error) {
	return inprocess.Open(ctx, inprocess.Config{})
}

// remote is the platform of a server.
func remote(context.Context) (platform, error) {
	return client.New(os.Getenv("COVE_URL"), os.Getenv("COVE_API_KEY"))
}
