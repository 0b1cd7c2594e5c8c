package daemon_test

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

// TestHostileArchives: each is refused over HTTP with a status and a sentence,
// nothing of it is outside of the directory, and the server goes on.
func TestHostileArchives(t *testing.T) {
	w := plug(t)
	if status, text := w.put("victim", 3); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		status  int
		want    string
	}{
		"parent":       {[]tar.Header{{Name: "../victim", Mode: 0o644}}, 400, `archive: the name \"../victim\" leaves the directory`},
		"absolute":     {[]tar.Header{{Name: "/etc/passwd", Mode: 0o644}}, 400, `archive: the name \"/etc/passwd\" leaves the directory`},
		"hard link":    {[]tar.Header{{Name: "l", Typeflag: tar.TypeLink, Linkname: "../victim"}}, 400, `archive: the name \"../victim\" leaves the directory`},
		"through link": {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/victim", Mode: 0o644}}, 400, "is a link; nothing is written through it"},
		"device":       {[]tar.Header{{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, 400, "is neither a file, a directory nor a link"},
		"a tebibyte":   {[]tar.Header{{Name: "bomb", Mode: 0o644, Size: 1 << 40}}, 413, `archive: the file \"bomb\" is larger than 100m, the most that may be written`},
	} {
		var b bytes.Buffer
		out := tar.NewWriter(&b)
		for _, h := range c.headers {
			if err := out.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = out.Flush() // the bomb has no content
		b.Write(make([]byte, 1024))
		if status, text := w.send("PUT", "/archive?path=into", &b); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for name, body := range map[string]string{"no tar": strings.Repeat("no tar ", 200), "cut short": string(tarOf(t, map[string]int{"f": 4096}, "f")[:2000])} {
		if status, text := w.send("PUT", "/archive?path=into", strings.NewReader(body)); status != 400 || !strings.Contains(text, "archive: ") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for name := range strings.SplitSeq(w.names(), ", ") {
		if !strings.HasPrefix(name, "into") && name != "victim 3" {
			t.Errorf("there is %s", name)
		}
	}
	if status, text := w.send("GET", "/files?path=victim", nil); status != 200 || text != "\x00\x00\x00" {
		t.Errorf("the victim: %d %q", status, text)
	}
}
