package e2bapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// interpreterRoutes are the routes of the code interpreter.
func interpreterRoutes() map[string]action {
	return map[string]action{
		"POST /execute":               (*call).execute,
		"GET /contexts":               (*call).listContexts,
		"POST /contexts":              (*call).openContext,
		"POST /contexts/{id}/restart": (*call).restartContext,
		"DELETE /contexts/{id}":       (*call).closeContext,
		"GET /health":                 (*call).interpreterHealth,
	}
}

// codeTime is what code may take: clients have a clock of their own and go away when it
// is over, which ends the code.
const codeTime = 24 * time.Hour

// maxOpenContexts bounds those that callers without the access token make.
const maxOpenContexts = 8

// spoken are the languages as clients call them, with their own names here.
var spoken = map[string]string{
	"": "python", "python": "python", "javascript": "node", "js": "node", "typescript": "typescript", "ts": "typescript", "bash": "bash",
}

// languageOf is a language by its own name.
func languageOf(word string) (string, error) {
	if own, ok := spoken[word]; ok {
		return own, nil
	}
	return "", cove.Errorf(cove.Unsupported, "there is no interpreter for %q", clip(word)).Remedy("use python, javascript, typescript or bash")
}

// wordOf is what clients call a language.
func wordOf(own string) string {
	if own == "node" {
		return "javascript"
	}
	return own
}

// standing are the contexts that clients find in every sandbox, by name and language.
// They are the ones that code runs in which names none, and begin with the first.
var standing = []string{"python", "node"}

// codeContext is a context, as clients have it.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

func (c *call) contexts() cove.Contexts { return c.platform.Contexts(c.id) }

// execution asks for code to be run.
type execution struct {
	Code     string            `json:"code"`
	Context  string            `json:"context_id"`
	Language string            `json:"language"`
	Env      map[string]string `json:"env_vars"`
}

// request is what the platform is asked for.
func (x execution) request() (cove.CodeRequest, error) {
	req := cove.CodeRequest{Code: x.Code, Env: x.Env, Limits: cove.Limits{Wall: codeTime}}
	if x.Context != "" && x.Language != "" {
		return req, cove.InvalidField("language", "stands beside context_id, and a context has its language; send one of them")
	}
	var err error
	switch {
	case slices.Contains(standing, x.Context):
		req.Language = x.Context
	case x.Context != "":
		req.Context = x.Context
	default:
		req.Language, err = languageOf(x.Language)
	}
	if err == nil {
		err = req.Validate()
	}
	return req, err
}

// execute runs code and answers with lines while it runs. A client that goes away stops
// the code.
func (c *call) execute() error {
	body, err := c.whole()
	if err != nil {
		return err
	}
	var asked execution
	if err := understand(body, &asked); err != nil {
		return err
	}
	req, err := asked.request()
	if err == nil {
		err = c.ready(req.Context)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	out := newLineWriter(c, cancel)
	defer out.close()
	req.OnOutput = out.chunk
	req.OnResult = func(value cove.Rich, main bool) { out.send(lineOf(value, main)) }
	r, err := c.contexts().Run(ctx, req)
	out.rest()
	if err != nil {
		out.send(errorLine{Type: lineError, Name: string(cove.CodeOf(err)), Value: textOf(err)})
	} else {
		if line, ok := failure(r); ok {
			out.send(line)
		}
		out.send(countLine{lineCount, r.Count})
	}
	out.send(bareLine{lineEnd})
	return err
}

// ready reports what stands in the way of code before the answer begins: afterwards
// there is no status for it any more.
func (c *call) ready(name string) error {
	s, err := c.platform.Sessions().Get(c.r.Context(), c.id)
	if err != nil {
		return err
	}
	switch s.State {
	case cove.Paused, cove.Stopped:
		if !s.AutoResumes() {
			return cove.Errorf(cove.Conflict, "the sandbox is paused").Reason(cove.ReasonSessionPaused).Remedy("connect to it, which resumes it")
		}
	case cove.Creating, cove.Running, cove.Failed, cove.Ended:
	}
	if name == "" {
		return nil
	}
	return c.found(name)
}

// found reports a context that is not there.
func (c *call) found(name string) error {
	for one, err := range c.contexts().List(c.r.Context()) {
		if err != nil || one.Name == name {
			return err
		}
	}
	return cove.Errorf(cove.NotFound, "Context %s not found", clip(name))
}

// failure is what there is to say of code that did not come to a good end.
func failure(r *cove.CodeResult) (errorLine, bool) {
	line := errorLine{Type: lineError}
	switch err := r.Err(); {
	case err == nil:
		return line, false
	case r.Error != nil:
		line.Name, line.Value, line.Traceback = r.Error.Name, r.Error.Value, r.Error.Traceback
	case r.Outcome == cove.Blocked:
		line.Name, line.Value = "PolicyError", textOf(err)
	case r.Outcome == cove.Exited:
		line.Name, line.Value = "ExitCode", strconv.Itoa(r.ExitCode)
	default:
		line.Name, line.Value = "ExecutionError", textOf(err)
	}
	if line.Traceback == "" {
		line.Traceback = line.Name + ": " + line.Value
	}
	return line, true
}

// listContexts tells the contexts that are there, and those that always are.
func (c *call) listContexts() error {
	all := []codeContext{}
	for one, err := range c.contexts().List(c.r.Context()) {
		if err != nil {
			return err
		}
		all = append(all, shownContext(one))
	}
	for _, name := range standing {
		if !slices.ContainsFunc(all, func(o codeContext) bool { return o.ID == name }) {
			all = append(all, codeContext{ID: name, Language: wordOf(name), Cwd: outward(cove.WorkspacePath)})
		}
	}
	c.answer(http.StatusOK, all)
	return nil
}

func shownContext(one cove.CodeContext) codeContext {
	return codeContext{ID: one.Name, Language: wordOf(one.Language), Cwd: outward(one.Dir)}
}

func (c *call) openContext() error {
	body, err := c.whole()
	if err != nil {
		return err
	}
	var asked struct {
		Language string `json:"language"`
		Cwd      string `json:"cwd"`
	}
	if err := understand(body, &asked); err != nil {
		return err
	}
	spec := cove.ContextSpec{}
	if spec.Language, err = languageOf(asked.Language); err != nil {
		return err
	}
	if asked.Cwd != "" {
		if spec.Dir, err = inward(asked.Cwd); err != nil {
			return err
		}
	}
	if err := c.roomForContext(); err != nil {
		return err
	}
	opened, err := c.contexts().Open(c.r.Context(), spec)
	if err != nil {
		return err
	}
	c.answer(http.StatusOK, shownContext(*opened))
	return nil
}

// roomForContext bounds what those can make who show nothing.
func (c *call) roomForContext() error {
	if !c.unshown {
		return nil
	}
	n := 0
	for _, err := range c.contexts().List(c.r.Context()) {
		if err != nil {
			return err
		}
		n++
	}
	if n >= maxOpenContexts {
		return cove.Errorf(cove.Exhausted, "the sandbox has %d contexts, as many as it may without an access token", n).
			Remedy("remove one first, or show the sandbox's access token")
	}
	return nil
}

func (c *call) restartContext() error { return c.context(cove.Contexts.Restart) }

func (c *call) closeContext() error { return c.context(cove.Contexts.Close) }

// context does something to a context. One that always is there, and that nothing has
// run in yet, has nothing to be undone.
func (c *call) context(do func(cove.Contexts, context.Context, string) error) error {
	name := c.r.PathValue("id")
	err := c.found(name)
	switch {
	case err == nil:
		err = do(c.contexts(), c.r.Context(), name)
	case cove.CodeOf(err) == cove.NotFound && !lost(err) && slices.Contains(standing, name):
		err = nil
	}
	if err == nil {
		c.answer(http.StatusOK, nil)
	}
	return err
}

func (c *call) interpreterHealth() error {
	if err := c.ready(""); err != nil {
		return err
	}
	c.answer(http.StatusOK, "OK")
	return nil
}
