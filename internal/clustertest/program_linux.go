package clustertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// ended reads what a program came to that prints nothing.
func ended(e *history.Event, body []byte) error {
	var x struct {
		ID      string `json:"session_id"`
		Exit    int    `json:"exit_code"`
		Outcome string `json:"outcome"`
		Stderr  string `json:"stderr"`
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return err
	}
	other(e, x.ID)
	if x.Outcome != "exited" || x.Exit != 0 {
		return fmt.Errorf("the program: %s, exit code %d: %.200q", x.Outcome, x.Exit, x.Stderr)
	}
	return nil
}

// ofCode reads what code printed, and whether its interpreter is new.
func ofCode(e *history.Event, body []byte) error {
	var x struct {
		Stdout string `json:"stdout"`
		Fresh  bool   `json:"context_fresh"`
		Error  *struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return err
	}
	e.Fresh = x.Fresh
	if x.Error != nil {
		return fmt.Errorf("the code: %s: %s", x.Error.Name, x.Error.Value)
	}
	if err := ended(e, body); err != nil {
		return err
	}
	if e.Op == history.Recall {
		e.Value = strings.TrimSuffix(x.Stdout, "\n")
	}
	return nil
}

// background is a background program as answers have it.
type background struct {
	Number  int    `json:"pid"`
	Running bool   `json:"running"`
	Output  string `json:"output_id"`
}

func begun(e *history.Event, body []byte) error {
	var p background
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	e.Program = fmt.Sprint(p.Number)
	return nil
}

// programIn finds the program that e is about in a list, and returns its output's name.
func programIn(e *history.Event, body []byte) string {
	var page struct {
		Items []background `json:"items"`
	}
	_ = json.Unmarshal(body, &page) // then it has none
	for _, p := range page.Items {
		if fmt.Sprint(p.Number) == e.Program {
			e.Running = p.Running
			return p.Output
		}
	}
	e.Absent = true
	return ""
}

// output reads what a background program has printed, after [programIn].
func output(e *history.Event, body []byte) error {
	if e.Absent {
		return nil
	}
	var page struct {
		Data string `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	e.Value = strings.TrimSuffix(page.Data, "\n")
	return nil
}
