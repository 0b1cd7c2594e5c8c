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

// call is a tool that a scripted model asks for, and a part of what it must be told then.
type call struct {
	tool  string
	input any
	told  string
}

// scripted is a model that makes calls in order, one at a time, and then says that it is
// done. It speaks to the SDKs of those who made it, and remembers what it was asked.
type scripted struct {
	env []string // how an SDK is told of it

	mu    sync.Mutex
	asked []string // guarded by mu
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

// play serves a model that follows a script.
func (a modelAPI) play(t *testing.T, script []call) *scripted {
	t.Helper()
	s := &scripted{}
	at := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil || r.URL.Path != a.path {
			http.Error(out, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusNotFound)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, string(body))
		n := len(s.asked)
		s.mu.Unlock()
		answer := a.done(n)
		if n <= len(script) {
			answer = a.use(n, script[n-1])
		}
		out.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(at.Close)
	s.env = []string{"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + at.URL, "OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + at.URL + "/v1"}
	return s
}

// check wants that every call was answered as the script says.
func (s *scripted) check(t *testing.T, script []call) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) != len(script)+1 {
		t.Fatalf("the model was asked %d times, and not %d", len(s.asked), len(script)+1)
	}
	for i, c := range script {
		if !strings.Contains(s.asked[i+1], c.told) {
			t.Errorf("after call %d of %s the model was not told %s:\n%.3000s", i+1, c.tool, c.told, s.asked[i+1])
		}
	}
}

// chat serves a model that speaks chat/completions and follows a script, as strictly as such
// servers are.
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
