package engine

import (
	"log/slog"

	"github.com/cove-sandbox/cove"
)

func errAttr(err error) slog.Attr      { return slog.Any("error", err) }
func sessionAttr(id cove.ID) slog.Attr { return slog.String("session", string(id)) }
