package sdk_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// scenario is one row of the table: steps that one caller makes, in order.
type scenario struct {
	Name      string            `json:"name"`
	Providers []string          `json:"providers,omitempty"` // left out: all that the table is run with
	Needs     []cove.Power      `json:"needs,omitempty"`     // of the provider; it is left out where one lacks
	Settings  map[string]string `json:"settings,omitempty"`  // of a server of its own
	Key       string            `json:"key,omitempty"`       // in the place of one that is good
	AutoRetry *bool             `json:"auto_retry,omitempty"`
	Steps     []step            `json:"steps"`
}

// step is one call and what must come of it: an answer that has what want has,
// or an error that has what fail has.
type step struct {
	Do       string            `json:"do"`
	Begin    string            `json:"begin,omitempty"` // the name of a call that goes on while others are made, up to a step end
	As       string            `json:"as,omitempty"`    // the name of what comes of it
	In       string            `json:"in,omitempty"`    // the name of a session
	Of       string            `json:"of,omitempty"`    // of anything else that came of a step
	ID       string            `json:"id,omitempty"`
	Once     string            `json:"once,omitempty"`    // an idempotency key
	Request  json.RawMessage   `json:"request,omitempty"` // as it travels
	Filter   map[string]string `json:"filter,omitempty"`
	Limit    int               `json:"limit,omitempty"`
	After    string            `json:"after,omitempty"` // the name of a list that goes on here
	Snapshot string            `json:"snapshot,omitempty"`
	Path     string            `json:"path,omitempty"`
	To       string            `json:"to,omitempty"`
	Text     string            `json:"text,omitempty"`
	Pieces   []string          `json:"pieces,omitzero"` // of input that is streamed
	Base64   []byte            `json:"base64,omitempty"`
	Times    int               `json:"times,omitempty"`
	Mode     string            `json:"mode,omitempty"`
	Offset   int64             `json:"offset,omitempty"`
	Length   int64             `json:"length,omitempty"`
	Depth    int               `json:"depth,omitempty"`
	Cols     uint16            `json:"cols,omitempty"`
	Rows     uint16            `json:"rows,omitempty"`
	Port     int               `json:"port,omitempty"`
	Minutes  float64           `json:"minutes,omitempty"`
	EOF      bool              `json:"eof,omitempty"`
	Range    struct {
		Offset int64 `json:"offset,omitempty"`
		Limit  int64 `json:"limit,omitempty"`
	} `json:"range,omitzero"`
	Want any               `json:"want,omitempty"`
	Fail map[string]string `json:"fail,omitempty"`
}

// table reads the scenarios for a provider.
func table(t *testing.T, provider string) []scenario {
	t.Helper()
	files, err := filepath.Glob("scenarios/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	var all []scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var some []scenario
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&some); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range some {
			if len(s.Providers) == 0 || slices.Contains(s.Providers, provider) {
				all = append(all, s)
			}
		}
	}
	return all
}

// served is the table by the servers that it needs.
type served struct {
	at        *server
	scenarios []scenario
}

// alone reports whether a scenario needs a server that no other uses.
func (s scenario) alone() bool {
	return len(s.Settings) > 0 || slices.ContainsFunc(s.Steps, func(one step) bool { return one.Do == "restart" })
}

// powers are what a provider of the server can do here.
func (s *server) powers(t *testing.T, provider string) []cove.Power {
	t.Helper()
	c, err := client.New(s.URL, s.key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	reports, err := c.Admin().Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range reports {
		if one.Name == provider {
			return one.Capabilities.Powers
		}
	}
	t.Fatalf("the server knows no provider %s", provider)
	return nil
}

// serveTable starts a server for the scenarios that can share one, and one for each of
// the others.
func serveTable(t *testing.T, provider string) []served {
	t.Helper()
	all := []served{{at: serve(t, provider)}}
	powers := all[0].at.powers(t, provider)
	for _, s := range table(t, provider) {
		if slices.ContainsFunc(s.Needs, func(p cove.Power) bool { return !slices.Contains(powers, p) }) {
			t.Logf("provider %s lacks a power of %v here, and is not asked for %q", provider, s.Needs, s.Name)
			continue
		}
		if !s.alone() {
			all[0].scenarios = append(all[0].scenarios, s)
			continue
		}
		var settings []string
		for name, value := range s.Settings {
			settings = append(settings, name+"="+value)
		}
		all = append(all, served{serve(t, provider, settings...), []scenario{s}})
	}
	return all
}

// tableProviders are those that the table is run with.
var tableProviders = []string{"fake", "local"}

// TestScenarios runs the table with the Go client, which the SDKs must be like.
func TestScenarios(t *testing.T) {
	for _, provider := range tableProviders {
		t.Run(provider, func(t *testing.T) {
			if provider != "fake" {
				tier.Full(t, "the same table with the provider fake")
			}
			needProvider(t, provider)
			for _, one := range serveTable(t, provider) {
				for _, s := range one.scenarios {
					t.Run(s.Name, func(t *testing.T) { play(t, one.at, s) })
				}
			}
		})
	}
}

// TestPythonScenarios runs the same table with the Python SDK, both ways.
func TestPythonScenarios(t *testing.T) {
	interpreter := python(t)
	for _, provider := range tableProviders {
		t.Run(provider, func(t *testing.T) {
			if provider != "fake" {
				tier.Full(t, "the same table with the provider fake")
			}
			needProvider(t, provider)
			for _, one := range serveTable(t, provider) {
				for _, way := range tier.Pick([]string{"waiting"}, "waiting", "asyncio") {
					cmd := exec.CommandContext(t.Context(), interpreter, "python/tests/scenarios.py", way)
					cmd.Env = append(pythonEnv(t), one.at.env()...)
					playElsewhere(t, cmd, one)
				}
			}
		})
	}
}

// playElsewhere gives scenarios to a program that runs them with an SDK. It gets them on
// one line of JSON and prints one for each. Where it asks for a restart of the server, it
// waits for a line that says that it was done.
func playElsewhere(t *testing.T, cmd *exec.Cmd, with served) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, 10*time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := converse(in, out, with)
	if end := cmd.Wait(); err != nil || end != nil {
		t.Errorf("%v: %v, %v\n%s", cmd.Args[1:], err, end, stderr.Bytes())
	}
	for _, s := range with.scenarios {
		t.Run(strings.Join(cmd.Args[2:], " ")+"/"+s.Name, func(t *testing.T) {
			if why, ran := said[s.Name]; !ran || why != "" {
				t.Errorf("ran %v: %s", ran, why)
			}
		})
	}
}

// converse is this side of playElsewhere: what was said of each scenario, by its name.
func converse(in io.WriteCloser, out io.Reader, with served) (map[string]string, error) {
	defer func() { _ = in.Close() }() // who ends has heard enough
	said := map[string]string{}
	if err := json.NewEncoder(in).Encode(with.scenarios); err != nil {
		return said, err
	}
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var line struct{ Name, Why, Restart string }
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			return said, fmt.Errorf("it printed %q", scan.Text())
		}
		if line.Restart == "" {
			said[line.Name] = line.Why
			continue
		}
		if err := with.at.restart(line.Restart); err != nil {
			return said, err
		}
		if _, err := fmt.Fprintln(in, "{}"); err != nil {
			return said, err
		}
	}
	return said, nil
}

// needProvider skips the test where sandboxes of a provider cannot be made.
func needProvider(t *testing.T, provider string) {
	t.Helper()
	if provider == "fake" {
		return
	}
	cmd := exec.CommandContext(t.Context(), program.Cove(t), "run", "--provider", provider, "--", "true")
	cmd.Env = append(plain(), "COVE_HOME="+filepath.Join(shortDir(t), "home"))
	if out, err := cmd.CombinedOutput(); err != nil {
		providertest.Lacks(t, provider, fmt.Sprintf("provider %s is not ready: %v: %s", provider, err, out))
	}
}

// lacks returns what of want is not in got, or "". Objects may have more than is wanted.
func lacks(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		if part, ok := want["$contains"].(string); ok {
			if text, ok := got.(string); !ok || !strings.Contains(text, part) {
				return fmt.Sprintf("%#v does not contain %q", got, part)
			}
			return ""
		}
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("is %#v and no object", got)
		}
		for name, value := range want {
			// What is left out is the same as nothing.
			if have[name] == nil && (value == "" || value == false || value == float64(0)) {
				continue
			}
			if why := lacks(value, have[name]); why != "" {
				return name + ": " + why
			}
		}
	case []any:
		have, _ := got.([]any)
		if len(have) != len(want) {
			return fmt.Sprintf("has %d elements and not %d: %v", len(have), len(want), got)
		}
		for i := range want {
			if why := lacks(want[i], have[i]); why != "" {
				return fmt.Sprintf("%d: %s", i, why)
			}
		}
	default:
		if want != got {
			return fmt.Sprintf("is %#v and not %#v", got, want)
		}
	}
	return ""
}
