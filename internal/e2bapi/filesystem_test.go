package e2bapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

func TestPaths(t *testing.T) {
	for name, want := range map[string]string{
		"":                    "/workspace",
		"~":                   "/workspace",
		"~/a":                 "/workspace/a",
		"~a":                  "/workspace/~a",
		"a/../b":              "/workspace/b",
		"/home/user":          "/workspace",
		"/home/user/":         "/workspace",
		"/home/user//a/./b":   "/workspace/a/b",
		"/home/user/../user2": "/home/user2",
		"/home/username":      "/home/username",
		"/tmp/a":              "/tmp/a",
		"/workspace/a":        "/workspace/a",
		"../../../etc":        "/etc",
	} {
		if got, err := e2bapi.Inward(name); got != want || err != nil {
			t.Errorf("%q is %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"/workspace": "/home/user", "/workspace/a": "/home/user/a", "/workspaces": "/workspaces", "/tmp": "/tmp"} {
		if got := e2bapi.Outward(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	for _, bad := range []string{"a\x00b", strings.Repeat("x", 5000)} {
		if _, err := e2bapi.Inward(bad); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%.10q gives %v", bad, err)
		}
	}
}

// files calls a method about files.
func (r *rig) files(id cove.ID, method, message string, header ...string) (int, string) {
	r.t.Helper()
	header = append([]string{"Content-Type", "application/json"}, header...)
	status, body, _ := r.read(r.inside(r.t.Context(), id, 49983, http.MethodPost, "/filesystem.Filesystem/"+method, strings.NewReader(message), header...))
	return status, body
}

var when = regexp.MustCompile(`"modifiedTime":"20[0-9T:.-]+Z"`)

// entries calls a method, and returns the answer without times.
func (r *rig) entries(id cove.ID, method, message string) string {
	r.t.Helper()
	status, body := r.files(id, method, message)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, message, status, body)
	}
	return when.ReplaceAllString(body, `"modifiedTime":"then"`)
}

func TestFilesystem(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	const dir = `"type":"FILE_TYPE_DIRECTORY","path":"/home/user/d","size":"0","mode":493,"permissions":"drwxr-xr-x","owner":"user","group":"user","modifiedTime":"then"}`
	file := func(name string) string {
		return `{"name":"` + name + `","type":"FILE_TYPE_FILE","path":"/home/user/d/` + name + `","size":"2","mode":420,"permissions":"-rw-r--r--","owner":"user","group":"user","modifiedTime":"then"}`
	}
	link := `{"name":"l","type":"FILE_TYPE_FILE","path":"/home/user/d/l","size":"0","mode":420,"permissions":"-rw-r--r--","owner":"user","group":"user","modifiedTime":"then","symlinkTarget":"/home/user/d/b","isSymlink":true}`
	nowhere := `{"name":"n","type":"FILE_TYPE_SYMLINK","path":"/home/user/d/n","size":"0","mode":511,"permissions":"Lrwxrwxrwx","owner":"user","group":"user","modifiedTime":"then","symlinkTarget":"/usr/x","isSymlink":true}`
	if got, want := r.entries(id, "MakeDir", `{"path":"d"}`), `{"entry":{"name":"d",`+dir+`}`; got != want {
		t.Errorf("MakeDir: %s", cmp.Diff(want, got))
	}
	r.putFile(id, "d/a", "hi")
	for _, tc := range []struct{ method, message, want string }{
		{"Stat", `{"path":"/home/user/d"}`, `{"entry":{"name":"d",` + dir + `}`},
		{"Stat", `{"path":"d/a"}`, `{"entry":` + file("a") + `}`},
		{"Move", `{"source":"d/a","destination":"~/d/b"}`, `{"entry":` + file("b") + `}`},
		{"ListDir", `{"path":"d"}`, `{"entries":[` + file("b") + `]}`},
		{"ListDir", `{"path":"","depth":0}`, `{"entries":[{"name":"d",` + dir + `]}`},
		{"ListDir", `{"path":".","depth":2}`, `{"entries":[{"name":"d",` + dir + `,` + file("b") + `]}`},
		{"Remove", `{"path":"none"}`, `{}`},
	} {
		if got := r.entries(id, tc.method, tc.message); got != tc.want {
			t.Errorf("%s %s: %s", tc.method, tc.message, cmp.Diff(tc.want, got))
		}
	}
	ran := must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "cd d && ln -s b l && ln -s /usr/x n && ln -s o o"}))(t)
	if ran.ExitCode != 0 {
		t.Fatal(ran.Result)
	}
	if got, want := r.entries(id, "ListDir", `{"path":"d"}`), `{"entries":[`+file("b")+`,`+link+`,`+nowhere+`,`; !strings.HasPrefix(got, want) {
		t.Errorf("links: %s", cmp.Diff(want, got))
	}
	if got := r.entries(id, "Move", `{"source":"d/b","destination":"new/er/c"}`); !strings.Contains(got, `"path":"/home/user/new/er/c"`) {
		t.Errorf("a move to a directory that is not there: %s", got)
	}
	if got := r.entries(id, "Remove", `{"path":"d"}`); got != "{}" || r.hasFile(id, "d/l") {
		t.Errorf("Remove: %s", got)
	}
}

func TestFilesystemErrors(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	r.putFile(id, "f", "x")
	r.putFile(id, "d/f", "x")
	for _, tc := range []struct {
		method, message string
		status          int
		code            string
	}{
		{"Stat", `{"path":"none"}`, 404, "not_found"},
		{"Stat", `{"path":"f/x"}`, 400, "invalid_argument"},
		{"Stat", `{"path":"/etc/passwd"}`, 400, "invalid_argument"},
		{"Stat", `{"path":"a\u0000b"}`, 400, "invalid_argument"},
		{"Stat", `{"path":7}`, 400, "invalid_argument"},
		{"MakeDir", `{"path":"d"}`, 409, "already_exists"},
		{"MakeDir", `{"path":"f"}`, 400, "invalid_argument"},
		{"MakeDir", `{"path":"/etc/d"}`, 400, "invalid_argument"},
		{"MakeDir", `{"path":"a\u0000b"}`, 400, "invalid_argument"},
		{"Move", `{"source":"none","destination":"x"}`, 404, "not_found"},
		{"Move", `{"source":"a\u0000","destination":"x"}`, 400, "invalid_argument"},
		{"Move", `{"source":"f","destination":"a\u0000"}`, 400, "invalid_argument"},
		{"Move", `{"source":"f","destination":"f/x/y"}`, 400, "invalid_argument"},
		{"Remove", `{"path":"a\u0000"}`, 400, "invalid_argument"},
		{"Remove", `{"path":"/home/user"}`, 400, "invalid_argument"},
		{"ListDir", `{"path":"none"}`, 404, "not_found"},
		{"ListDir", `{"path":"f"}`, 400, "invalid_argument"},
		{"ListDir", `{"path":"d","depth":1000}`, 400, "invalid_argument"},
		{"ListDir", `{"path":"a\u0000"}`, 400, "invalid_argument"},
		{"CreateWatcher", `{"path":"none"}`, 404, "not_found"},
		{"CreateWatcher", `{"path":"f"}`, 400, "invalid_argument"},
		{"CreateWatcher", `{"path":"a\u0000"}`, 400, "invalid_argument"},
		{"GetWatcherEvents", `{"watcherId":"none"}`, 404, "not_found"},
		{"RemoveWatcher", `{"watcherId":"none"}`, 404, "not_found"},
	} {
		status, body := r.files(id, tc.method, tc.message)
		var got struct{ Code, Message string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != tc.status || got.Code != tc.code || got.Message == "" {
			t.Errorf("%s %s: %d %s", tc.method, tc.message, status, body)
		}
	}
	if status, body := r.files(id, "Stat", `{"path":"f"}`, "X-Access-Token", "wrong"); status != 401 || !strings.Contains(body, `"unauthenticated"`) {
		t.Errorf("a wrong token: %d %s", status, body)
	}
	if status, body := r.files(id, "Stat", `{"path":"f"}`, "Authorization", "Basic cm9vdDo="); status != 400 || !strings.Contains(body, `"invalid_argument"`) {
		t.Errorf("root: %d %s", status, body)
	}
	must(r.platform().Sessions().Close(t.Context(), id, false))(t)
	for _, method := range []string{"Stat", "Remove", "MakeDir", "ListDir", "Move", "CreateWatcher"} {
		if status, body := r.files(id, method, `{"path":"f","source":"f"}`); status != 502 {
			t.Errorf("%s in a sandbox that is gone: %d %s", method, status, body)
		}
	}
}
