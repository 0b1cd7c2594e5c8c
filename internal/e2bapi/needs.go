package e2bapi

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// needs are the verbs of which calls need the scopes: of calls with a body those that the
// platform is asked for, whatever the body says, and of calls that this package answers
// itself those that they are a part of.
var needs = map[string]cove.Verb{
	"POST /sandboxes":                 cove.SessionOpen,
	"POST /v2/sandboxes":              cove.SessionOpen,
	"POST /sandboxes/{id}/connect":    cove.SessionGet,
	"POST /v2/sandboxes/{id}/connect": cove.SessionGet,
	"POST /sandboxes/{id}/resume":     cove.SessionGet,
	"POST /sandboxes/{id}/refreshes":  cove.SessionGet,
	"POST /sandboxes/{id}/timeout":    cove.SessionRenew,
	"POST /sandboxes/{id}/pause":      cove.SnapshotPause,
	"PUT /sandboxes/{id}/network":     cove.SessionSetNetwork,
	"POST /sandboxes/{id}/fork":       cove.SnapshotFork,
	"POST /sandboxes/{id}/snapshots":  cove.SnapshotSnapshot,

	"POST /templates/tags":                         cove.TemplateTag,
	"DELETE /templates/tags":                       cove.TemplateDelete,
	"POST /v3/templates":                           cove.TemplateBuild,
	"POST /v2/templates/{id}/builds/{build}":       cove.TemplateBuild,
	"GET /templates/{id}/files/{hash}":             cove.TemplateBuild,
	"GET /templates/{id}/builds/{build}/status":    cove.TemplateBuild,
	"GET /secrets":                                 cove.SessionList,
	"GET /secrets/{id}":                            cove.SessionList,
	"POST /volumes":                                cove.VolumeCreate,
	"PATCH /volumecontent/{id}/path":               cove.FileStat,
	"PUT /volumecontent/{id}/file":                 cove.FileWrite,
	"POST /execute":                                cove.ContextRun,
	"POST /contexts":                               cove.ContextOpen,
	"POST /files":                                  cove.FileWrite,
	"POST /process.Process/Start":                  cove.ProcessStart,
	"POST /process.Process/Connect":                cove.ProcessConnect,
	"POST /process.Process/List":                   cove.ProcessList,
	"POST /process.Process/SendInput":              cove.ProcessInput,
	"POST /process.Process/StreamInput":            cove.ProcessInput,
	"POST /process.Process/CloseStdin":             cove.ProcessInput,
	"POST /process.Process/SendSignal":             cove.ProcessSignal,
	"POST /process.Process/Update":                 cove.ProcessResize,
	"POST /filesystem.Filesystem/Stat":             cove.FileStat,
	"POST /filesystem.Filesystem/MakeDir":          cove.FileMkdir,
	"POST /filesystem.Filesystem/Move":             cove.FileMove,
	"POST /filesystem.Filesystem/Remove":           cove.FileRemove,
	"POST /filesystem.Filesystem/ListDir":          cove.FileList,
	"POST /filesystem.Filesystem/WatchDir":         cove.FileWatch,
	"POST /filesystem.Filesystem/CreateWatcher":    cove.FileWatch,
	"POST /filesystem.Filesystem/GetWatcherEvents": cove.FileWatch,
	"POST /filesystem.Filesystem/RemoveWatcher":    cove.FileWatch,
}

// permitted refuses a call whose key lacks the scope, before its body is read.
func (c *call) permitted(route string) error {
	if !strings.Contains(route, " ") {
		route = c.r.Method + " " + route
	}
	verb, ok := needs[route]
	if !ok {
		return nil
	}
	id := c.id
	if strings.Contains(route, "/sandboxes/{id}") {
		id = cove.ID(c.r.PathValue("id"))
	}
	return c.h.cfg.Authorize(c.r.Context(), c.who, id, verb)
}
