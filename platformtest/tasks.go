package platformtest

import (
	"slices"
	"testing"

	"github.com/cove-sandbox/cove"
)

func taskCases() []testCase {
	return []testCase{
		{"list", taskList},
		{"pause_and_resume", taskPauseAndResume},
		{"run", taskRun},
		{"restart", taskRestart},
		{"all_at_once", tasksAllAtOnce},
		{"bad_requests", taskBadRequests},
	}
}

// taskNames are the tasks that every platform has.
func taskNames() []string { return []string{"expiry", "orphans", "pool", "records"} }

// pick finds a task by its name.
func (r *rig) pick(list []cove.TaskStatus, name string) cove.TaskStatus {
	r.t.Helper()
	i := slices.IndexFunc(list, func(t cove.TaskStatus) bool { return t.Name == name })
	if i < 0 {
		r.t.Fatalf("there is no task %s in %+v", name, list)
	}
	return list[i]
}

func (r *rig) task(name string) cove.TaskStatus {
	r.t.Helper()
	list, err := r.admin().Admin().Tasks(r.ctx)
	r.must(err, "tasks")
	return r.pick(list, name)
}

func (r *rig) control(name string, do cove.TaskVerb) []cove.TaskStatus {
	r.t.Helper()
	list, err := r.admin().Admin().ControlTask(r.ctx, name, do)
	r.must(err, string(do)+" a task")
	return list
}

func taskList(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, name := range taskNames() {
		if got := r.task(name); got.Interval <= 0 || got.LastError != "" || got.State != cove.TaskWaiting && got.State != cove.TaskRunning {
			t.Errorf("the task is %+v", got)
		}
	}
}

func taskPauseAndResume(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, name := range taskNames() {
		list := r.control(name, cove.PauseTask)
		if got := r.pick(list, name); got.State != cove.TaskPaused || r.task(name).State != cove.TaskPaused {
			t.Errorf("a paused task is %+v", got)
		}
		if got := r.pick(r.control(name, cove.ResumeTask), name); got.State == cove.TaskPaused {
			t.Errorf("a resumed task is %+v", got)
		}
	}
}

// taskRun: running a task waits for it, also when it is paused.
func taskRun(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, name := range taskNames() {
		before := r.task(name)
		after := r.pick(r.control(name, cove.RunTask), name)
		if after.Runs <= before.Runs || after.LastRun.IsZero() || after.LastError != "" {
			t.Errorf("running a task changed it from %+v to %+v", before, after)
		}
		r.control(name, cove.PauseTask)
		again := r.pick(r.control(name, cove.RunTask), name)
		if again.Runs <= after.Runs || again.State != cove.TaskPaused {
			t.Errorf("running a paused task changed it from %+v to %+v", after, again)
		}
	}
}

func taskRestart(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, name := range taskNames() {
		if got := r.pick(r.control(name, cove.RestartTask), name); got.State != cove.TaskWaiting && got.State != cove.TaskRunning {
			t.Errorf("a restarted task is %+v", got)
		}
	}
}

func tasksAllAtOnce(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	for _, do := range []cove.TaskVerb{cove.PauseTask, cove.ResumeTask} {
		list := r.control("", do)
		for _, name := range taskNames() {
			if paused := r.pick(list, name).State == cove.TaskPaused; paused != (do == cove.PauseTask) {
				t.Errorf("%s for all tasks left %s as %+v", do, name, list)
			}
		}
	}
}

func taskBadRequests(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	admin := r.admin().Admin()
	_, err := admin.ControlTask(r.ctx, "no-such-task", cove.RunTask)
	wantCode(t, err, cove.NotFound, cove.Invalid)
	for _, do := range []cove.TaskVerb{"", "destroy"} {
		_, err = admin.ControlTask(r.ctx, "expiry", do)
		wantCode(t, err, cove.Invalid)
	}
}
