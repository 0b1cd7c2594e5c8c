//go:build lean

package daemon

import (
	"context"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

// templates is nothing: a run from another template than the base is left to the
// whole program.
type templates struct{}

func openTemplates(context.Context, config.Config, bool) (*templates, error) { return nil, nil }

// maker returns nothing: a run in process changes no templates.
func maker(*templates, config.Config) cove.TemplateMaker { return nil }

// Close implements what the whole program does.
func (*templates) Close() error { return nil }
