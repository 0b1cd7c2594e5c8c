package wire

import (
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Maintenance is the answer about the background tasks, by name.
type Maintenance struct {
	OverallStatus  string          `json:"overall_status" jsonschema:"running, paused, partly_paused or failing"`
	Tasks          map[string]Task `json:"tasks"`
	OrphansRemoved *int64          `json:"orphans_removed,omitempty" jsonschema:"after a cleanup: how many went"`
}

// Task is one background task.
type Task struct {
	State           cove.TaskState `json:"state" jsonschema:"waiting, running, paused or stopped"`
	IntervalSeconds float64        `json:"interval_seconds"`
	Runs            int64          `json:"runs"`
	Done            int64          `json:"done" jsonschema:"things it has dealt with, in all"`
	LastDone        int64          `json:"last_done" jsonschema:"and in its last run"`
	LastRun         time.Time      `json:"last_run,omitzero"`
	LastError       string         `json:"last_error,omitempty"`
}

// orphans is the task whose work a cleanup is asked for.
const orphans = "orphans"

// MaintenanceOf returns the form of the tasks.
func MaintenanceOf(tasks []cove.TaskStatus) Maintenance {
	w := Maintenance{OverallStatus: overall(tasks), Tasks: map[string]Task{}}
	for _, t := range tasks {
		w.Tasks[t.Name] = Task{
			State: t.State, IntervalSeconds: in(t.Interval, time.Second), Runs: t.Runs, Done: t.Done, LastDone: t.LastDone,
			LastRun: t.LastRun, LastError: t.LastError,
		}
	}
	return w
}

// CleanupOf returns the form of the tasks after they were run.
func CleanupOf(tasks []cove.TaskStatus) Maintenance {
	w := MaintenanceOf(tasks)
	if t, ok := w.Tasks[orphans]; ok {
		w.OrphansRemoved = &t.LastDone
	}
	return w
}

func overall(tasks []cove.TaskStatus) string {
	held := 0
	for _, t := range tasks {
		if t.LastError != "" {
			return "failing"
		}
		if t.State == cove.TaskPaused || t.State == cove.TaskStopped {
			held++
		}
	}
	switch {
	case held == 0:
		return "running"
	case held == len(tasks):
		return "paused"
	}
	return "partly_paused"
}

// Cove returns the platform's own form, ordered by name.
func (w Maintenance) Cove() []cove.TaskStatus {
	tasks := make([]cove.TaskStatus, 0, len(w.Tasks))
	for name, t := range w.Tasks {
		tasks = append(tasks, cove.TaskStatus{
			Name: name, State: t.State, Interval: of(t.IntervalSeconds, time.Second), Runs: t.Runs, Done: t.Done,
			LastDone: t.LastDone, LastRun: t.LastRun, LastError: t.LastError,
		})
	}
	slices.SortFunc(tasks, func(a, b cove.TaskStatus) int { return strings.Compare(a.Name, b.Name) })
	return tasks
}
