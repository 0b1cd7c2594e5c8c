package sdk_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/internal/chat/modeltest"
)

// modelled serves a model that makes calls in order, one at a time, and then says that it is
// done. It returns how an SDK is told of the model, and what to call when that has gone:
// every call must have been answered as the script says.
type modelled func(t *testing.T, script []call) (env []string, check func())

// call is a tool that a scripted model asks for, and a part of what it must be told then.
type call struct {
	tool  string
	input any
	told  string
}

// modelAPI is how the API of a model looks: where it is, and what it answers with.
type modelAPI struct {
	path string
	use  func(n int, c call) any
	done func(n int) any
}

const done = "It is done."

// messages is Anthropic's API.
var messages = modelAPI{
	path: "/v1/messages",
	use: func(n int, c call) any {
		return message(n, "tool_use", map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": c.tool, "input": c.input})
	},
	done: func(n int) any { return message(n, "end_turn", map[string]any{"type": "text", "text": done}) },
}

func message(n int, stop string, block any) any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": "scripted", "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": 1, "output_tokens": 1}, "content": []any{block},
	}
}

// responses is OpenAI's API of that name. A call of shell is one of its own tool.
var responses = modelAPI{
	path: "/v1/responses",
	use: func(n int, c call) any {
		if c.tool == "shell" {
			return response(n, map[string]any{"type": "shell_call", "id": fmt.Sprintf("sh_%d", n), "call_id": fmt.Sprintf("call_%d", n), "status": "completed", "action": c.input})
		}
		arguments, _ := json.Marshal(c.input) // it is a map of texts
		return response(n, map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%d", n), "call_id": fmt.Sprintf("call_%d", n), "name": c.tool, "arguments": string(arguments), "status": "completed"})
	},
	done: func(n int) any {
		return response(n, map[string]any{
			"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": done, "annotations": []any{}}},
		})
	},
}

func response(n int, item any) any {
	return map[string]any{
		"id": fmt.Sprintf("resp_%d", n), "object": "response", "created_at": 1, "status": "completed", "model": "scripted", "output": []any{item},
		"parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{},
	}
}

// play serves a model of this API.
func (a modelAPI) play(t *testing.T, script []call) (env []string, check func()) {
	t.Helper()
	var mu sync.Mutex
	var asked []string // guarded by mu
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil || r.URL.Path != a.path {
			http.Error(w, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusNotFound)
			return
		}
		mu.Lock()
		asked = append(asked, string(body))
		n := len(asked)
		mu.Unlock()
		answer := a.done(n)
		if n <= len(script) {
			answer = a.use(n, script[n-1])
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(at.Close)
	env = []string{"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + at.URL, "OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + at.URL + "/v1"}
	return env, func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != len(script)+1 {
			t.Fatalf("the model was asked %d times, and not %d", len(asked), len(script)+1)
		}
		for i, c := range script {
			if !strings.Contains(asked[i+1], c.told) {
				t.Errorf("after call %d of %s the model was not told %s:\n%.3000s", i+1, c.tool, c.told, asked[i+1])
			}
		}
	}
}

// chat serves a model that speaks chat/completions, as strict as such servers are.
func chat(t *testing.T, script []call) (env []string, check func()) {
	t.Helper()
	var steps []modeltest.Step
	for _, c := range script {
		arguments, err := json.Marshal(c.input)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, modeltest.Use(modeltest.Call{Name: c.tool, Arguments: string(arguments)}))
	}
	at := modeltest.New(modeltest.Config{Steps: append(steps, modeltest.Say(done))})
	t.Cleanup(at.Close)
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + at.URL()}, func() {
		t.Helper()
		if err := at.Err(); err != nil {
			t.Fatal(err)
		}
		for i, c := range script {
			if told := at.Questions()[i+1].Last(); !strings.Contains(told, c.told) {
				t.Errorf("after call %d of %s the model was not told %s but %s", i+1, c.tool, c.told, told)
			}
		}
	}
}
