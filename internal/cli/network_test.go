package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/cli"
)

func TestNetworkOfASandbox(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create", "--allow-net", "example.com", "--allow-net", "*.example.org:8443")
	if got := b.ok("sandbox", "network", id); got != "allow\nallow example.com\nallow *.example.org:8443\n" {
		t.Errorf("network shows %q", got)
	}
	b.ok("sandbox", "exec", id, "curl", "http://example.com/")
	b.run("sandbox", "exec", id, "curl", "http://www.example.com/")
	if got := b.ok("sandbox", "network", "--allow", "www.example.com", id); got != "allow\nallow www.example.com\n" {
		t.Errorf("the new network is %q", got)
	}
	b.ok("sandbox", "exec", id, "curl", "http://www.example.com/")
	b.run("sandbox", "exec", id, "curl", "http://www.example.com:81/")
	rows := strings.Split(b.ok("sandbox", "connections", id), "\n")
	if len(rows) != 6 || !strings.HasPrefix(rows[0], "NUMBER  TIME ") || !strings.Contains(rows[1], "  allowed  example.com:80 ") ||
		!strings.Contains(rows[2], "  refused  www.example.com:80 ") || !strings.HasSuffix(rows[2], "  it is not on the list") || !strings.Contains(rows[3], "allowed") {
		t.Errorf("connections shows\n%s", strings.Join(rows, "\n"))
	}
	if got := b.ok("--json", "sandbox", "network", "--open", id); got != `{"mode":"open"}`+"\n" {
		t.Errorf("open is %q", got)
	}
	b.run("sandbox", "exec", id, "curl", "http://nobody.example/")
	if got := b.ok("--json", "sandbox", "connections", id); strings.Count(got, "\n") != 5 || !strings.Contains(got, `"host":"nobody.example"`) {
		t.Errorf("connections in JSON:\n%s", got)
	}
	if got := b.ok("sandbox", "connections", id); !strings.Contains(got, "  failed   nobody.example:80 ") {
		t.Errorf("a failure is shown as\n%s", got)
	}
	b.ok("sandbox", "network", "--none", id)
	b.follow(id)
}

// until calls do when a word comes by.
type until struct {
	bytes.Buffer

	word string
	do   func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.word) && u.do != nil {
		do := u.do
		u.do = nil
		do()
	}
	return n, err
}

// follow: a connection that is made while the log is followed is shown, and the
// end of the command is the caller's.
func (b *box) follow(id string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var made int
	out := &until{word: "nobody.example", do: func() { made = b.run("sandbox", "exec", id, "curl", "http://late.example/").code }}
	last := &until{word: "late.example", do: cancel}
	code := cli.Run(ctx, cli.System{
		Args: []string{"sandbox", "connections", "--follow", id}, Stdin: strings.NewReader(""),
		Stdout: both{out, last}, Stderr: &bytes.Buffer{}, Env: b.lookup,
	})
	if made == 0 || code != 130 || !strings.Contains(out.String(), "  refused  late.example:80 ") {
		b.t.Errorf("followed with code %d:\n%s", code, out)
	}
}

type both struct{ one, two *until }

func (w both) Write(p []byte) (int, error) {
	if n, err := w.one.Write(p); err != nil {
		return n, err
	}
	return w.two.Write(p)
}

func TestNetworkThatIsRefused(t *testing.T) {
	b := served(t)
	id := b.id("sandbox", "create", "--network", "none")
	if got := b.ok("sandbox", "network", id); got != "none\n" {
		t.Errorf("network shows %q", got)
	}
	for words, flags := range map[string]string{
		"choose one of them":                    "--allow a.com --none",
		"--secret: goes with --allow or --open": "--secret key",
		"is not a host name":                    "--allow http://x/",
		"is not the name of a secret":           "--open --secret a/b",
	} {
		b.fails(2, words, append(append([]string{"sandbox", "network"}, strings.Fields(flags)...), id)...)
	}
	b.fails(8, "stop the session", "sandbox", "network", "--allow", "a.com", id)
	b.fails(5, "", "sandbox", "network", nobody)
	b.fails(5, "", "sandbox", "connections", nobody)
	b.fails(2, "has no secrets", "sandbox", "create", "--allow-net", "a.com", "--secret", "key")
	b.fails(125, "goes only with network.mode allow or open", "run", "--secret", "key", "--", "true")
}
