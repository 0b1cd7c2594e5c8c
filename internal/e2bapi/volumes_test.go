package e2bapi_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/volume"
)

// serveVolumes starts a rig with volumes.
func serveVolumes(t *testing.T, change ...func(*engine.Config)) *rig {
	t.Helper()
	folders := must(volume.Open(filepath.Join(t.TempDir(), "volumes")))(t)
	t.Cleanup(func() {
		if err := folders.Close(); err != nil {
			t.Error(err)
		}
	})
	return serveWith(t, rigOptions{engine: func(c *engine.Config) {
		c.Folders = folders
		for _, set := range change {
			set(c)
		}
	}})
}

type madeVolume struct{ VolumeID, Name, Token string }

func (r *rig) volume(name string) madeVolume {
	r.t.Helper()
	var v madeVolume
	r.wants(http.StatusCreated, &v, "POST", "/volumes", `{"name":"`+name+`"}`)
	return v
}

// content is where a file of a volume is, and who asks.
func (v madeVolume) content(kind, name string, more ...string) string {
	q := url.Values{"path": {name}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/volumecontent/" + v.VolumeID + "/" + kind + "?" + q.Encode()
}

func (v madeVolume) shown() []string {
	return []string{"X-Api-Key", "", "Authorization", "Bearer " + v.Token}
}

func TestVolumes(t *testing.T) {
	r := serveVolumes(t)
	v := r.volume("shared")
	if v.Name != "shared" || !cove.ID(v.VolumeID).Valid() || v.Token == "" {
		t.Fatalf("%+v", v)
	}
	r.refuses(http.StatusConflict, "shared", "POST", "/volumes", `{"name":"shared"}`)
	r.refuses(http.StatusBadRequest, "name", "POST", "/volumes", `{"name":"../up"}`)
	var again madeVolume
	r.wants(http.StatusOK, &again, "GET", "/volumes/"+v.VolumeID, "")
	if again != v {
		t.Errorf("%+v, later %+v", v, again)
	}
	var all []madeVolume
	r.wants(http.StatusOK, &all, "GET", "/volumes", "")
	if diff := cmp.Diff([]madeVolume{{VolumeID: v.VolumeID, Name: v.Name}}, all); diff != "" {
		t.Error(diff)
	}
	r.refuses(http.StatusNotFound, "volume", "GET", "/volumes/"+v.VolumeID, "", "X-Api-Key", otherKey)
	r.refuses(http.StatusNotFound, "volume", "DELETE", "/volumes/"+v.VolumeID, "", "X-Api-Key", otherKey)
	r.refuses(http.StatusNotFound, "volume", "GET", "/volumes/shared", "")

	r.refuses(http.StatusNotFound, "none", "POST", "/v2/sandboxes", `{"volumeMounts":[{"name":"none","path":"/v"}]}`)
	r.refuses(http.StatusBadRequest, "/home/user", "POST", "/v2/sandboxes", `{"volumeMounts":[{"name":"shared","path":"/home/user/v"}]}`)
	r.refuses(http.StatusBadRequest, "volumes", "POST", "/v2/sandboxes", `{"volumeMounts":[{"name":"shared","path":"v"}]}`)
	id := r.create(`{"volumeMounts":[{"name":"shared","path":"/mnt/v/"}]}`)
	r.wants(http.StatusCreated, nil, "PUT", v.content("file", "/a.txt"), "hello", v.shown()...)
	if status, text, _ := r.read(r.inside(t.Context(), id, 49983, "GET", "/files?path=/mnt/v/a.txt", nil)); status != http.StatusOK || text != "hello" {
		t.Errorf("in the sandbox: %d %s", status, text)
	}
	var info struct{ VolumeMounts []struct{ Name, Path string } }
	r.wants(http.StatusOK, &info, "GET", "/sandboxes/"+string(id), "")
	if len(info.VolumeMounts) != 1 || info.VolumeMounts[0].Name != "shared" || info.VolumeMounts[0].Path != "/mnt/v" {
		t.Errorf("%+v", info)
	}
	var listed []struct{ SandboxID cove.ID }
	r.wants(http.StatusOK, &listed, "GET", "/v2/sandboxes", "")
	if len(listed) != 1 || listed[0].SandboxID != id {
		t.Errorf("the session for the files is listed as a sandbox: %+v", listed)
	}
	r.refuses(http.StatusConflict, "", "DELETE", "/volumes/"+v.VolumeID, "")
	r.wants(http.StatusNoContent, nil, "DELETE", "/sandboxes/"+string(id), "")
	r.wants(http.StatusNoContent, nil, "DELETE", "/volumes/"+v.VolumeID, "")
	r.refuses(http.StatusNotFound, "volume", "DELETE", "/volumes/"+v.VolumeID, "")
	r.refuses(http.StatusNotFound, "volume", "GET", v.content("path", "/a.txt"), "", v.shown()...)
}

type volumeEntry struct {
	Name, Path, Type string
	Size             int64
	Mode, UID        int
}

func TestVolumeContent(t *testing.T) {
	r := serveVolumes(t)
	v := r.volume("files")
	var got volumeEntry
	ask := func(status int, method, at, body string) {
		t.Helper()
		got = volumeEntry{}
		var into any = &got
		if status >= http.StatusNoContent {
			into = nil
		}
		r.wants(status, into, method, at, body, v.shown()...)
	}
	ask(http.StatusCreated, "PUT", v.content("file", "/deep/er/a.bin", "mode", "384"), "\x00\xff")
	if diff := cmp.Diff(volumeEntry{Name: "a.bin", Path: "/deep/er/a.bin", Type: "file", Size: 2, Mode: 0o600, UID: 1000}, got); diff != "" {
		t.Error(diff)
	}
	if _, text, h := r.read(r.ask("GET", v.content("file", "deep/er/a.bin"), "", v.shown()...)); text != "\x00\xff" || h.Get("Content-Disposition") != "attachment" {
		t.Errorf("%q %v", text, h)
	}
	ask(http.StatusOK, "PATCH", v.content("path", "/deep/er/a.bin"), `{"mode":416}`)
	if got.Mode != 0o640 {
		t.Errorf("mode %o", got.Mode)
	}
	ask(http.StatusNotFound, "POST", v.content("dir", "/no/such"), "")
	ask(http.StatusCreated, "POST", v.content("dir", "/no/such", "force", "true", "mode", "448"), "")
	if got.Type != "directory" || got.Mode != 0o700 {
		t.Errorf("%+v", got)
	}
	ask(http.StatusConflict, "POST", v.content("dir", "/no/such"), "")
	ask(http.StatusConflict, "POST", v.content("dir", "/deep/er/a.bin", "force", "true"), "")
	var list []volumeEntry
	r.wants(http.StatusOK, &list, "GET", v.content("dir", "/", "depth", "9"), "", v.shown()...)
	var paths []string
	for _, e := range list {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"/deep", "/deep/er", "/deep/er/a.bin", "/no", "/no/such"}, paths); diff != "" {
		t.Error(diff)
	}
	ask(http.StatusOK, "GET", v.content("path", "/"), "")
	if got.Name != "/" || got.Type != "directory" {
		t.Errorf("%+v", got)
	}
	ask(http.StatusNoContent, "DELETE", v.content("path", "/deep"), "")
	ask(http.StatusNotFound, "DELETE", v.content("path", "/deep"), "")
}

// TestVolumeContentRefuses: what asks for something that cannot be changes nothing.
func TestVolumeContentRefuses(t *testing.T) {
	r := serveVolumes(t)
	v := r.volume("files")
	for name, tc := range map[string]struct {
		status           int
		say              string
		method, at, body string
	}{
		"no path":            {400, "path", "GET", "/volumecontent/" + v.VolumeID + "/path", ""},
		"a path out of it":   {404, "", "GET", v.content("file", "../../../etc/hostname"), ""},
		"a NUL":              {400, "path", "GET", v.content("path", "a\x00b"), ""},
		"a long one":         {400, "path", "PUT", v.content("file", strings.Repeat("x", 5000)), "x"},
		"another owner":      {400, "uid", "PUT", v.content("file", "/x", "uid", "0"), "x"},
		"a mode too large":   {400, "mode", "PUT", v.content("file", "/x", "mode", "2541"), "x"},
		"a mode of words":    {400, "mode", "POST", v.content("dir", "/x", "mode", "rwx"), ""},
		"a depth of nothing": {400, "depth", "GET", v.content("dir", "/", "depth", "0"), ""},
		"a body that is not": {400, "JSON", "PATCH", v.content("path", "/"), "{"},
		"the volume itself":  {400, "itself", "DELETE", v.content("path", "/x/.."), ""},
		"a folder's content": {400, "directory", "GET", v.content("file", "/"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			r.refuses(tc.status, tc.say, tc.method, tc.at, tc.body, v.shown()...)
		})
	}
	var list []volumeEntry
	if r.wants(http.StatusOK, &list, "GET", v.content("dir", "/"), "", v.shown()...); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestVolumeLinks: links within a volume are followed, and those out of it are refused:
// what is written there would be lost.
func TestVolumeLinks(t *testing.T) {
	r := serveVolumes(t)
	v := r.volume("files")
	id := r.create(`{"volumeMounts":[{"name":"files","path":"/mnt/v"}]}`)
	line := "cd /mnt/v && mkdir d && echo in > d/f && ln -s d/f near && ln -s d dir && ln -s /tmp/x far && ln -s ../tmp up && ln -s /home/user home && ln -s loop loop && ln -s none dangling"
	must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: line}))(t)
	for _, name := range []string{"/near", "/dir/f"} {
		if _, text, _ := r.read(r.ask("GET", v.content("file", name), "", v.shown()...)); text != "in\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
	for _, name := range []string{"/far", "/up/x", "/home/x"} {
		r.refuses(http.StatusBadRequest, "leads out of the volume", "PUT", v.content("file", name), "lost", v.shown()...)
		r.refuses(http.StatusBadRequest, "leads out of the volume", "GET", v.content("file", name), "", v.shown()...)
	}
	r.refuses(http.StatusBadRequest, "too many links", "PUT", v.content("file", "/loop"), "x", v.shown()...)
	var got volumeEntry
	r.wants(http.StatusCreated, &got, "PUT", v.content("file", "/dangling"), "new", v.shown()...)
	if got.Path != "/none" || got.Size != 3 {
		t.Errorf("%+v", got)
	}
	r.wants(http.StatusOK, &got, "GET", v.content("path", "/far"), "", v.shown()...)
	if got.Type != "symlink" {
		t.Errorf("%+v", got)
	}
	r.wants(http.StatusNoContent, nil, "DELETE", v.content("path", "/far"), "", v.shown()...)
}

// TestFullVolume: one that is over its limit can be read and destroyed.
func TestFullVolume(t *testing.T) {
	r := serveVolumes(t, func(c *engine.Config) { c.VolumeFiles = 2 })
	v := r.volume("full")
	r.wants(http.StatusCreated, nil, "PUT", v.content("file", "/a"), "kept", v.shown()...)
	for _, name := range []string{"/b", "/c"} { // the last may be told that its session is over
		r.read(r.ask("PUT", v.content("file", name), "x", v.shown()...))
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for status := 0; status != http.StatusTooManyRequests; <-tick.C { // a look is made now and then
		status, _, _ = r.read(r.ask("PUT", v.content("file", "/d"), "x", v.shown()...))
	}
	if status, text, _ := r.read(r.ask("GET", v.content("file", "/a"), "", v.shown()...)); status != http.StatusOK || text != "kept" {
		t.Errorf("%d %q", status, text)
	}
	r.wants(http.StatusNoContent, nil, "DELETE", "/volumes/"+v.VolumeID, "")
}

// TestVolumeTokens: a token is good for one volume and for as long as its key.
func TestVolumeTokens(t *testing.T) {
	r := serveVolumes(t)
	mine, second := r.volume("mine"), r.volume("second")
	var theirs madeVolume
	r.wants(http.StatusCreated, &theirs, "POST", "/volumes", `{"name":"mine"}`, "X-Api-Key", otherKey)
	flipped := mine
	flipped.Token = mine.Token[:len(mine.Token)-1] + string(rune(mine.Token[len(mine.Token)-1]^1))
	for name, token := range map[string]string{
		"none": "", "one changed by a bit": flipped.Token, "that of another volume": second.Token, "another tenant's": theirs.Token,
		"the key": goodKey, "another's name before it": strings.SplitN(theirs.Token, ".", 2)[0] + "." + strings.SplitN(mine.Token, ".", 2)[1],
	} {
		v := mine
		v.Token = token
		t.Log(name)
		r.refuses(http.StatusUnauthorized, "token", "GET", v.content("dir", "/"), "", v.shown()...)
	}
	r.wants(http.StatusOK, nil, "GET", mine.content("dir", "/"), "", mine.shown()...)
	r.revoked["tester"] = true
	r.refuses(http.StatusUnauthorized, "no longer good", "GET", mine.content("dir", "/"), "", mine.shown()...)
}
