package httpapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func taskRoutes() []route {
	const maintenance = "/api/maintenance"
	one := []param{{name: "task", kind: word, doc: "which one; left out, all"}}
	return []route{
		{method: http.MethodGet, pattern: maintenance, summary: "See the background tasks", deed: get((*call).tasks)},
		{method: http.MethodPost, pattern: maintenance + "/pause", summary: "Pause background tasks", deed: get(controls(cove.PauseTask)), query: one},
		{method: http.MethodPost, pattern: maintenance + "/resume", summary: "Resume background tasks", deed: get(controls(cove.ResumeTask)), query: one},
		{method: http.MethodPost, pattern: maintenance + "/cleanup", summary: "Run background tasks now and wait for them", deed: get(controls(cove.RunTask)), query: one},
		{method: http.MethodPost, pattern: maintenance + "/restart", summary: "Start background tasks over", deed: get(controls(cove.RestartTask)), query: one},
	}
}

func (c *call) tasks() (wire.Maintenance, error) {
	tasks, err := c.platform.Admin().Tasks(c.r.Context())
	return wire.MaintenanceOf(tasks), err
}

// controls returns what does one thing to the tasks that the query names.
func controls(do cove.TaskVerb) func(*call) (wire.Maintenance, error) {
	form := wire.MaintenanceOf
	if do == cove.RunTask {
		form = wire.CleanupOf
	}
	return func(c *call) (wire.Maintenance, error) {
		tasks, err := c.platform.Admin().ControlTask(c.r.Context(), c.query.text("task"), do)
		return form(tasks), err
	}
}
