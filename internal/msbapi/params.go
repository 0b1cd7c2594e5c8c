package msbapi

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/cove-sandbox/cove"
)

// params are those of all methods.
type params struct {
	Namespace string   `json:"namespace"`
	Sandbox   string   `json:"sandbox"`
	Config    *config  `json:"config"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Language  string   `json:"language"`
	Code      string   `json:"code"`
	Timeout   *float64 `json:"timeout"` // in seconds
}

// config is what a sandbox is started with.
type config struct {
	Image     string          `json:"image"`
	Memory    *int64          `json:"memory"` // in MiB
	CPUs      *float64        `json:"cpus"`
	Volumes   []string        `json:"volumes"` // host:guest, with :ro for reading alone
	Ports     []string        `json:"ports"`
	Envs      []string        `json:"envs"` // NAME=value
	DependsOn []string        `json:"depends_on"`
	Workdir   string          `json:"workdir"`
	Shell     string          `json:"shell"` // of scripts, of which there are none
	Scripts   json.RawMessage `json:"scripts"`
	Exec      string          `json:"exec"`
}

// parse reads the params of a method.
func parse(method string, raw json.RawMessage) (p params, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, wrong(fmt.Sprintf("Invalid parameters: %.200s", err))
	}
	whole := method == "sandbox.metrics.get"
	if err := named("Namespace", p.Namespace, whole); err != nil {
		return p, err
	}
	if p.Sandbox == "" && whole {
		return p, nil
	}
	return p, named("Sandbox name", p.Sandbox, false)
}

// maxName is how long the original lets names be.
const maxName = 63

// named checks a name as the original does. all allows the word for every namespace.
func named(what, name string, all bool) error {
	if all && name == everything {
		return nil
	}
	if name == "" {
		return wrong(what + " cannot be empty")
	}
	if len(name) > maxName {
		return wrong(fmt.Sprintf("%s cannot be longer than %d characters", what, maxName))
	}
	for i := range len(name) {
		b := name[i]
		word := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !word && (i == 0 || b != '-' && b != '_') {
			return wrong(what + " may have letters, digits, - and _, and begins with a letter or a digit")
		}
	}
	return nil
}

// untimed is how long a program without a timeout may take: the client's patience,
// which ends the program when it ends, is shorter.
const untimed = 24 * time.Hour

// limits are those of a run.
func (p params) limits() (cove.Limits, error) {
	if p.Timeout == nil {
		return cove.Limits{Wall: untimed}, nil
	}
	seconds := *p.Timeout
	if math.IsNaN(seconds) || seconds <= 0 {
		return cove.Limits{}, wrong("timeout must be more than 0 seconds")
	}
	if seconds >= untimed.Seconds() {
		return cove.Limits{Wall: untimed}, nil
	}
	return cove.Limits{Wall: max(time.Duration(seconds*float64(time.Second)), time.Millisecond)}, nil
}
