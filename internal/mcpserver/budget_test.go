package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/mcpserver"
	"github.com/cove-sandbox/cove/internal/policy"
)

// fits checks that an answer is within a budget, as text and as structure.
func (s said) fits(t *testing.T, budget int) {
	t.Helper()
	raw, err := json.Marshal(s.value)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s.value); err != nil {
		t.Fatal(err)
	}
	if len(s.text) > budget || b.Len() > budget || !utf8.ValidString(s.text) {
		t.Errorf("%d bytes of text and %d of structure, and the budget is %d: %.300s", len(s.text), b.Len(), budget, raw)
	}
}

func TestAnswersFitTheBudget(t *testing.T) {
	const budget = 4 << 10
	w := newWorld(t, func(c *engine.Config) { c.OutputBudget = 64 << 10 })
	c, _ := stdio(t, mcpserver.Config{Budget: budget}, w.As(boss), nil)
	long := func(piece string) string { return strings.Repeat(piece, 100_000/len(piece)) }
	for name, text := range map[string]string{
		"lines": long("0123456789\n"), "quotes": long(`"\`), "controls": long("\x00\x01\x1b"), "runes": long("äß€😀"), "broken": long("\xff\xfe"), "html": long("<&>"),
		"latin": long("a\xe9"), "quoted": long("\"\xe9"),
	} {
		c.call("write_file", args{"path": name, "content": base64.StdEncoding.EncodeToString([]byte(text)), "encoding": "base64"})
		got := c.call("execute_command", args{"command": "cat " + name + "; cat " + name + " >&2"})
		got.fits(t, budget)
		if got.value["truncated"] != true || !strings.Contains(got.text, "output was cut") {
			t.Errorf("%s: nobody says that it was cut: %.200s", name, got.text)
		}
		if name != "broken" && !strings.Contains(got.text, "bytes are cut here") { // what is no text is shown as one sign
			t.Errorf("%s: %.300s", name, got.text)
		}
		id, _ := got.value["output_id"].(string)
		if id == "" || !strings.Contains(got.text, id) {
			t.Errorf("%s: the rest has no name", name)
			continue
		}
		page := c.call("read_file", args{"output_id": id, "offset": 100})
		page.fits(t, budget)
		if page.value["size"] != float64(2*len(text)) || page.value["offset"] != 100.0 {
			t.Errorf("%s: a page of output: %+v", name, page)
		}
		if next, shown := page.value["next_offset"].(float64), page.value["content"].(string); next-100 < budget/8 || name == "latin" && next-100 != float64(2*strings.Count(shown, "a")) {
			t.Errorf("%s: the next page begins at %.0f, and this one has %d bytes", name, next, len(shown))
		}
	}

	// A file is read in parts that are the whole.
	for _, name := range []string{"lines", "quotes", "runes"} {
		var whole strings.Builder
		for at := 0.0; at >= 0; {
			part := c.call("read_file", args{"path": name, "offset": at})
			part.fits(t, budget)
			whole.WriteString(part.value["content"].(string))
			next := part.value["next_offset"].(float64)
			if next >= 0 && (next <= at || !strings.Contains(part.text, fmt.Sprintf("go on with offset %.0f", next))) {
				t.Fatalf("%s: after %.0f comes %.0f: %.100s", name, at, next, part.text)
			}
			at = next
		}
		if want := map[string]string{"lines": long("0123456789\n"), "quotes": long(`"\`), "runes": long("äß€😀")}[name]; whole.String() != want {
			t.Errorf("%s: its parts are not the whole", name)
		}
	}
	if got := c.call("read_file", args{"path": "lines", "offset": 11, "limit": 5}); got.value["content"] != "01234" || got.value["next_offset"] != 16.0 {
		t.Errorf("a small part: %+v", got)
	}
	if got := c.call("read_file", args{"path": "lines", "offset": 1 << 30}); got.value["next_offset"] != -1.0 || got.failed {
		t.Errorf("beyond the end: %+v", got)
	}

	var names strings.Builder
	for i := range 300 {
		fmt.Fprintf(&names, "touch many-%03d; ", i)
	}
	c.call("execute_command", args{"command": names.String()})
	list := c.call("list_files", args{"path": "/workspace"})
	list.fits(t, budget)
	if list.value["truncated"] != true {
		t.Errorf("a long list: %+v", list)
	}
	code := c.call("execute_code", args{"language": "python", "code": "raise " + strings.Repeat("Name", 1000) + " " + long("x")})
	code.fits(t, budget)
	c.fails(cove.Invalid, "execute_command", args{"command": "true", "session_id": long("x")}).fits(t, budget)
	c.fails(cove.Invalid, "execute_command", args{"command": []string{long("x")}}).fits(t, budget) // which no schema has
	c.fails(cove.NotFound, "read_file", args{"path": strings.Repeat("x", 200)}).fits(t, budget)
}

func TestTheSmallestBudget(t *testing.T) {
	w := newWorld(t)
	c, _ := stdio(t, mcpserver.Config{Budget: 1}, w.As(boss), nil)
	if got := c.call("execute_command", args{"command": "echo hello"}); got.value["stdout"] != "hello\n" {
		t.Errorf("%+v", got)
	}
	got := c.call("run_python_code", args{"code": "print(\"" + strings.Repeat("x", 5000) + "\")"})
	got.fits(t, 1<<10)
}

// shows is a platform whose code shows some values, prints, or fails.
type shows struct {
	cove.Platform

	result *cove.CodeResult
	fail   error
	run    *cove.Run
	all    []*cove.Session
	stats  *cove.Stats
}

func (s shows) Contexts(cove.ID) cove.Contexts { return showing{s: s} }
func (s shows) Runs() cove.Runs                { return running{s: s} }
func (s shows) Admin() cove.Admin              { return counting{s: s} }

func (s shows) Sessions() cove.Sessions {
	if s.all == nil {
		return s.Platform.Sessions()
	}
	return listing{s.Platform.Sessions(), s.all}
}

type listing struct {
	cove.Sessions

	all []*cove.Session
}

func (l listing) List(context.Context, cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	return func(yield func(*cove.Session, error) bool) {
		for _, s := range l.all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

type showing struct {
	cove.Contexts

	s shows
}

func (s showing) Run(context.Context, cove.CodeRequest) (*cove.CodeResult, error) {
	return s.s.result, s.s.fail
}

type running struct {
	cove.Runs

	s shows
}

func (r running) Submit(context.Context, cove.RunRequest) (*cove.Run, error) {
	return &cove.Run{ID: cove.NewID(), State: cove.RunRunning}, nil
}

func (r running) Wait(ctx context.Context, _ cove.ID) (*cove.Run, error) {
	if r.s.run == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.s.run, r.s.fail
}

func (r running) Delete(context.Context, cove.ID) error { return nil }

type counting struct {
	cove.Admin

	s shows
}

func (c counting) Stats(context.Context) (*cove.Stats, error) { return c.s.stats, c.s.fail }

func TestImages(t *testing.T) {
	w := newWorld(t)
	png := []byte("\x89PNG\r\n\x1a\n....")
	encoded := base64.StdEncoding.EncodeToString(png)
	value := cove.Rich{"text/plain": "<Figure>", "image/png": encoded, "image/svg+xml": "<svg/>"}
	large := cove.Rich{"image/jpeg": base64.StdEncoding.EncodeToString(make([]byte, 2<<20))}
	for name, tc := range map[string]struct {
		values []cove.Rich
		images int
		text   string
	}{
		"one":        {[]cove.Rich{value}, 1, "<Figure>\n[image/png, 12 bytes]\n[image/svg+xml, 6 bytes]"},
		"too many":   {[]cove.Rich{value, value, value, value, value, value}, 4, "2 of the images cannot be shown"},
		"too large":  {[]cove.Rich{large}, 0, "1 of the images cannot be shown"},
		"no base64":  {[]cove.Rich{{"image/png": "%"}}, 0, "1 of the images cannot be shown"},
		"no image":   {[]cove.Rich{{"text/html": "<b>"}}, 0, "[text/html, 3 bytes]"},
		"too many 2": {make([]cove.Rich, 100), 0, "output was cut"},
	} {
		r := &cove.CodeResult{Execution: cove.Execution{Result: cove.Result{Outcome: cove.Exited}}, Results: tc.values}
		c, _ := stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), result: r}, nil)
		for _, tool := range []string{"execute_code", "run_python_code"} {
			a := args{"code": "plot"}
			if tool == "execute_code" {
				a["language"] = "python"
			} else if name == "too many 2" {
				continue
			}
			if got := c.call(tool, a); got.images != tc.images || !strings.Contains(got.text, tc.text) || got.failed {
				t.Errorf("%s, %s: %+v", name, tool, got)
			}
		}
	}

	c, _ := stdio(t, mcpserver.Config{}, w.As(boss), nil)
	c.call("write_file", args{"path": "p.png", "content": encoded, "encoding": "base64"})
	c.call("write_file", args{"path": "b.bin", "content": "AAEC/w==", "encoding": "base64"})
	if got := c.call("read_file", args{"path": "p.png"}); got.images != 1 || got.value["mime_type"] != "image/png" || got.value["content"] != nil {
		t.Errorf("an image: %+v", got)
	}
	if got := c.call("read_file", args{"path": "b.bin"}); got.links != 1 || !strings.Contains(got.text, "is no text: application/octet-stream, 4 bytes") {
		t.Errorf("no text: %+v", got)
	}
	c.call("execute_command", args{"command": "echo text > t; ln -s t l; ln -s l m; ln -s loop loop; mkdir d; ln -s d dl"})
	if got := c.call("read_file", args{"path": "m"}); got.text != "text" {
		t.Errorf("through links: %+v", got)
	}
	c.fails(cove.Invalid, "read_file", args{"path": "loop"})
	c.fails(cove.Invalid, "read_file", args{"path": "dl"})
}

func TestHowThingsEnd(t *testing.T) {
	w := newWorld(t)
	for outcome, want := range map[cove.Outcome]string{
		cove.Signaled: "ended by signal SEGV", cove.TimedOut: "the time ran out", cove.OutOfMemory: "more memory", cove.OutputLimit: "wrote more than it may",
		cove.Blocked: "blocked by policy", cove.Killed: "killed",
	} {
		r := &cove.CodeResult{Execution: cove.Execution{Result: cove.Result{Outcome: outcome, Signal: "SEGV"}}}
		c, _ := stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), result: r}, nil)
		if got := c.call("execute_code", args{"language": "python", "code": "x"}); !strings.Contains(got.text, want) || got.failed != (outcome == cove.Blocked) || got.value["success"] != false {
			t.Errorf("%s: %+v", outcome, got)
		}
	}
	r := &cove.CodeResult{
		Execution: cove.Execution{Result: cove.Result{Outcome: cove.Exited}}, Error: &cove.CodeError{Name: "E", Value: "v"},
	}
	c, _ := stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), result: r}, nil)
	if got := c.call("execute_code", args{"language": "python", "code": "x"}); got.text != "E: v" {
		t.Errorf("no traceback: %+v", got)
	}
}

func TestCommandsThatAreBlocked(t *testing.T) {
	rules, err := policy.New(policy.Config{Default: "agent-bash"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *engine.Config) { c.Policy, c.Policies = rules, rules.Profiles() })
	c, _ := stdio(t, mcpserver.Config{}, w.As(boss), nil)
	got := c.call("execute_command", args{"command": "ls && curl http://example.com"})
	refusal, _ := got.value["refusal"].(map[string]any)
	if !got.failed || got.value["outcome"] != "blocked" || refusal["word"] != "curl" || !strings.Contains(got.text, "blocked by policy, rule ") {
		t.Errorf("%+v", got)
	}
}

// TestASmallBudget: what code names is in the answer only as far as it fits.
func TestASmallBudget(t *testing.T) {
	const budget = 1 << 10
	w := newWorld(t)
	long := &cove.CodeResult{}
	long.Outcome, long.Security = cove.Blocked, &cove.SecurityReport{}
	for i := range 50 {
		long.Security.Blocked = append(long.Security.Blocked, cove.Import{Module: fmt.Sprintf("m%d_%s", i, strings.Repeat("\"x", 5000))})
	}
	long.Refusal = &cove.Refusal{Rule: "imports", Reason: strings.Repeat("r", 5000), Word: strings.Repeat("w", 5000)}
	c, _ := stdio(t, mcpserver.Config{Budget: budget}, shows{Platform: w.As(boss), result: long}, nil)
	got := c.call("run_python_code", args{"code": "x"})
	got.fits(t, budget)
	meta, _ := got.value["meta"].(map[string]any)
	if names, _ := meta["blocked_imports"].([]any); len(names) == 0 || meta["truncated"] != true || !strings.HasPrefix(names[0].(string), "m0_") {
		t.Errorf("%+v", meta)
	}
	c.call("execute_code", args{"language": "python", "code": "x"}).fits(t, budget)

	short := &cove.CodeResult{Security: &cove.SecurityReport{Blocked: []cove.Import{{Module: "os"}, {Module: "subprocess"}}}}
	c, _ = stdio(t, mcpserver.Config{Budget: budget}, shows{Platform: w.As(boss), result: short}, nil)
	meta, _ = c.call("run_python_code", args{"code": "x"}).value["meta"].(map[string]any)
	if fmt.Sprint(meta["blocked_imports"], meta["truncated"]) != "[os subprocess] false" {
		t.Errorf("%+v", meta)
	}
}

func TestRowsAndNumbers(t *testing.T) {
	const budget = 4 << 10
	w := newWorld(t)
	row := json.RawMessage(`[12345678901234567890,"<a&b>",null,1.50]`)
	many := &cove.RunAnswer{Status: "success", Columns: []string{"a", "b", "c", "d"}, RowCount: 1000}
	for range 1000 {
		many.Rows = append(many.Rows, row)
	}
	var vols []cove.Volume
	var all []*cove.Session
	for i := range 500 {
		vols = append(vols, cove.Volume{Source: fmt.Sprintf("/data/%d", i), Target: "/d"})
		all = append(all, &cove.Session{ID: cove.NewID(), CreatedAt: time.Unix(int64(i), 0)})
	}
	p := shows{Platform: w.As(boss), run: &cove.Run{ID: "r", Answer: many}, all: all, stats: &cove.Stats{Volumes: vols}}
	c, _ := stdio(t, mcpserver.Config{Budget: budget}, p, nil)
	got := c.call("run_sql", args{"sql": "SELECT 1"})
	got.fits(t, budget)
	if got.value["truncated"] != true || !strings.Contains(got.text, `[12345678901234567890,"<a&b>",null,1.50]`) {
		t.Errorf("many rows: %.300s", got.text)
	}
	got = c.call("get_volume_mappings", nil)
	got.fits(t, budget)
	if got.value["truncated"] != true {
		t.Errorf("many volumes: %.300s", got.text)
	}
	got = c.call("get_sessions", nil)
	got.fits(t, budget)
	if list := got.value["sessions"].([]any); got.value["truncated"] != true || list[0].(map[string]any)["session_id"] != string(all[499].ID) {
		t.Errorf("many sessions: %.300s", got.text)
	}

	wide := &cove.RunAnswer{Status: "success", Columns: strings.Split(strings.Repeat("column,", 1000), ",")}
	c, _ = stdio(t, mcpserver.Config{Budget: budget}, shows{Platform: w.As(boss), run: &cove.Run{Answer: wide}}, nil)
	c.fails(cove.Invalid, "run_sql", args{"sql": "SELECT 1"})

	bad := &cove.RunAnswer{Status: "error", Error: &cove.RunError{
		Type: cove.RunSQLPolicy, Message: strings.Repeat("no ", 5000), Refusal: &cove.Refusal{Rule: "one_select", Reason: strings.Repeat("r", 5000), Word: "DROP"},
	}}
	c, _ = stdio(t, mcpserver.Config{Budget: budget}, shows{Platform: w.As(boss), run: &cove.Run{Answer: bad}}, nil)
	got = c.call("run_sql", args{"sql": "DROP"})
	got.fits(t, budget)
	if problem := got.value["problem"].(map[string]any); !got.failed || problem["type"] != cove.RunSQLPolicy || !strings.HasPrefix(got.text, "SQL_POLICY_VIOLATION: no ") {
		t.Errorf("refused: %.300s", got.text)
	}

	hangs := shows{Platform: w.As(boss)}
	c, _ = stdio(t, mcpserver.Config{Budget: budget}, hangs, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_sql", Arguments: args{"sql": "SELECT 1"}}); err == nil {
		t.Error("nobody waited, and there is an answer")
	}
}

func TestFaultsOfOurOwn(t *testing.T) {
	w := newWorld(t)
	secret := errors.New("a secret path")
	c, _ := stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), fail: secret}, nil)
	for _, tool := range []string{"get_volume_mappings", "get_resource_stats"} {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err == nil || !strings.Contains(err.Error(), "the log has the cause under") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	c, _ = stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), run: &cove.Run{}}, nil)
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_sql", Arguments: args{"sql": "SELECT 1"}}); err == nil {
		t.Error("a run without an answer is an answer")
	}
	lost := cove.Errorf(cove.NotFound, "the node is gone").Reason(cove.ReasonNodeLost)
	c, _ = stdio(t, mcpserver.Config{}, shows{Platform: w.As(boss), fail: lost}, nil)
	first := c.call("execute_command", args{"command": "true"}).value["session_id"]
	c.fails(cove.NotFound, "execute_code", args{"language": "python", "code": "x"})
	if got := c.call("execute_command", args{"command": "true"}); got.value["session_id"] != first {
		t.Errorf("the platform still has it: %+v", got)
	}
}
