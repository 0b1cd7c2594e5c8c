package mcpserver_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/mcpserver"
)

func TestFilesAreResources(t *testing.T) {
	world := newWorld(t)
	w := serve(t, mcpserver.Config{}, world.platform)
	c := w.connect("boss", nil)
	if r, err := c.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 0 {
		t.Fatalf("before there is a session: %+v, %v", r, err)
	}
	if r, err := c.ListResourceTemplates(t.Context(), nil); err != nil || len(r.ResourceTemplates) != 1 || r.ResourceTemplates[0].URITemplate != "cove://{session}/workspace/{+path}" {
		t.Fatalf("templates: %+v, %v", r, err)
	}
	id := c.call("write_file", args{"path": "dir/a b%.txt", "content": "text"}).value["session_id"].(string)
	c.call("write_file", args{"path": "z.bin", "content": "AAEC/w==", "encoding": "base64"})
	c.call("write_file", args{"path": "one/two/deep", "content": ""})
	c.call("write_file", args{"path": "large", "content": base64.StdEncoding.EncodeToString(make([]byte, 1<<20+1)), "encoding": "base64"})
	r, err := c.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range r.Resources {
		names = append(names, x.Name)
	}
	if got := strings.Join(names, ","); got != "dir/a b%.txt,large,z.bin" {
		t.Errorf("resources: %s", got)
	}
	read := func(c client, uri string) (*mcp.ResourceContents, error) {
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return nil, err
		}
		return r.Contents[0], nil
	}
	if x, err := read(c, r.Resources[0].URI); err != nil || x.Text != "text" || x.MIMEType != "text/plain" {
		t.Errorf("%s: %+v, %v", r.Resources[0].URI, x, err)
	}
	if x, err := read(c, r.Resources[2].URI); err != nil || string(x.Blob) != "\x00\x01\x02\xff" {
		t.Errorf("%s: %+v, %v", r.Resources[2].URI, x, err)
	}
	if x, err := read(c, "cove://"+id+"/workspace/one/two/deep"); err != nil || x.Text != "" {
		t.Errorf("an empty file: %+v, %v", x, err)
	}
	for uri, words := range map[string]string{
		"cove://" + id + "/workspace/large":                  "more than 1m",
		"cove://" + id + "/workspace/dir":                    "is a directory",
		"cove://" + id + "/workspace/nosuch":                 "not found",
		"cove://" + id + "/workspace/../etc/passwd":          "not found",
		"cove://" + id + "/workspace/%2e%2e/etc/passwd":      "not found",
		"cove://" + id + "/etc/passwd":                       "not found",
		"cove://x/workspace/a":                               "not found",
		"cove://" + strings.Repeat("0", 26) + "/workspace/a": "not found",
		"file:///etc/passwd":                                 "not found",
		"cove://user@" + id + "/workspace/z.bin":             "not found",
		"cove://" + id + "/workspace/z.bin?query":            "not found",
		"cove://" + id + "/workspace/z.bin#part":             "not found",
		"%":                                                  "not found",
	} {
		if x, err := read(c, uri); err == nil || !strings.Contains(strings.ToLower(err.Error()), words) {
			t.Errorf("%s: %+v, %v", uri, x, err)
		}
	}
	if x, err := read(w.connect("other", nil), r.Resources[0].URI); err == nil {
		t.Errorf("another tenant reads %+v", x)
	}
	if _, err := read(w.connect("none", nil), r.Resources[0].URI); err == nil || !strings.Contains(err.Error(), "files:read") {
		t.Errorf("who may not read: %v", err)
	}
	c.call("stop_session", args{"session_id": id})
	if r, err := c.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 0 {
		t.Errorf("of a stopped session: %+v, %v", r, err)
	}
	if _, err := world.As(boss).Sessions().Close(t.Context(), cove.ID(id), false); err != nil {
		t.Fatal(err)
	}
	if r, err := c.ListResources(t.Context(), nil); err != nil || len(r.Resources) != 0 {
		t.Errorf("of a session that has ended: %+v, %v", r, err)
	}
}
