package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/chat"
	"github.com/cove-sandbox/cove/internal/chat/modeltest"
	"github.com/cove-sandbox/cove/internal/chat/openai"
)

const key = "sk-test-0123456789"

var _ chat.Model = (*openai.Model)(nil)

// model starts a scripted server and returns a model behind it, and its log.
func model(t *testing.T, steps ...modeltest.Step) (*openai.Model, *modeltest.Server, *bytes.Buffer) {
	t.Helper()
	s := modeltest.New(modeltest.Config{Key: key, Model: "m", Steps: steps})
	t.Cleanup(s.Close)
	m, log := at(t, s.URL(), key, "m", 20*time.Second)
	return m, s, log
}

func at(t *testing.T, url, secret, name string, within time.Duration) (*openai.Model, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	m, err := openai.New(openai.Config{URL: url, Key: secret, Model: name, Timeout: within, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, &log
}

var question = chat.Ask{
	Turns: []chat.Turn{{Role: chat.System, Text: "Be brief."}, {Role: chat.User, Text: "How many?"}},
	Tools: []chat.Tool{{Name: "count", Description: "Counts.", Parameters: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`)}},
}

func TestReplies(t *testing.T) {
	one, two := modeltest.Call{ID: "a", Name: "count", Arguments: `{"what":"ä ö ü"}`}, modeltest.Call{ID: "b", Name: "count", Arguments: `{}`}
	for name, tt := range map[string]struct {
		step modeltest.Step
		want chat.Reply
	}{
		"text":     {modeltest.Say("There are three ☃."), chat.Reply{Text: "There are three ☃."}},
		"calls":    {modeltest.Use(one, two), chat.Reply{Calls: []chat.Call{{ID: "a", Name: "count", Arguments: one.Arguments}, {ID: "b", Name: "count", Arguments: "{}"}}}},
		"cut":      {modeltest.SayUpTo("There are"), chat.Reply{Text: "There are", End: chat.EndLength}},
		"filtered": {modeltest.Filtered(""), chat.Reply{End: chat.EndFiltered}},
		"in one":   {modeltest.Whole("Three."), chat.Reply{Text: "Three."}},
		"parts": {
			modeltest.Raw(200, "application/json", `{"choices":[{"index":0,"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}`),
			chat.Reply{Text: "ab"},
		},
		"refusal": {
			modeltest.Raw(200, "application/json", `{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}`),
			chat.Reply{Text: "No."},
		},
		"object": {
			modeltest.Raw(200, "application/json", `{"error":null,"choices":[{"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}]}`),
			chat.Reply{Calls: []chat.Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}}},
		},
		"other choice": {
			modeltest.Raw(200, "application/json", `{"choices":[{"index":0,"message":{"content":"a"}},{"index":1,"message":{"content":"b"}}]}`),
			chat.Reply{Text: "a"},
		},
		"not asked for a stream": {
			modeltest.Raw(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n"),
			chat.Reply{Text: "a"},
		},
		"no DONE": {
			modeltest.Raw(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"),
			chat.Reply{Text: "a"},
		},
		"calls without index": {
			stream(
				`[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`, `[{"function":{"arguments":":1}"}}]`, `[{"id":"b","function":{"name":"g","arguments":"{}"}}]`,
			),
			chat.Reply{Calls: []chat.Call{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{}`}}},
		},
		"calls without index and id": {
			stream(`[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]`),
			chat.Reply{Calls: []chat.Call{{Name: "f", Arguments: `{}`}, {Name: "g", Arguments: `{}`}}},
		},
		"calls with one id": {
			modeltest.Raw(200, "application/json", `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"g","arguments":"{}"}}]}}]}`),
			chat.Reply{Calls: []chat.Call{{ID: "a", Name: "f", Arguments: `{}`}, {ID: "a", Name: "g", Arguments: `{}`}}},
		},
		"calls with one index": {
			stream(`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}]`, `[{"index":0,"function":{"arguments":"}"}}]`),
			chat.Reply{Calls: []chat.Call{{ID: "a", Name: "f", Arguments: `{}`}, {ID: "b", Name: "g", Arguments: `{}`}}},
		},
		"calls in turn": {
			stream(`[{"index":7,"id":"a","function":{"name":"f"}},{"index":3,"id":"b","function":{"name":"g"}}]`, `[{"index":7,"function":{"arguments":"1"}},{"index":3,"function":{"arguments":"2"}}]`),
			chat.Reply{Calls: []chat.Call{{ID: "a", Name: "f", Arguments: `1`}, {ID: "b", Name: "g", Arguments: `2`}}},
		},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				m, s, _ := model(t, tt.step)
				var heard strings.Builder
				on := func(text string) { heard.WriteString(text) }
				if !streamed {
					on = nil
				}
				got, err := m.Next(t.Context(), question, on)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, *got); diff != "" {
					t.Errorf("streamed %t (-want +got):\n%s", streamed, diff)
				}
				if streamed && heard.String() != tt.want.Text {
					t.Errorf("heard %q", heard.String())
				}
				if err := s.Err(); err != nil {
					t.Error(err)
				}
				if q := s.Questions()[0]; q.Stream != streamed || q.Last() != "How many?" || q.ToolChoice != "auto" || q.Tools[0].Function.Name != "count" {
					t.Errorf("asked %+v", q)
				}
			})
		}
	}
}

// stream is an answer whose events have these calls.
func stream(calls ...string) modeltest.Step {
	var b strings.Builder
	for _, c := range calls {
		b.WriteString(`data: {"choices":[{"delta":{"tool_calls":` + c + "}}]}\n\n")
	}
	b.WriteString("data: {\"choices\":[]}\n\ndata: [DONE]\n\n")
	return modeltest.Raw(200, "text/event-stream", b.String())
}

// TestConversation: what the model asked for, and what it was told, go back to it in
// the form that servers want.
func TestConversation(t *testing.T) {
	m, s, _ := model(t, modeltest.Say("Three."))
	ask := chat.Ask{Turns: []chat.Turn{
		{Role: chat.User, Text: "How many?"},
		{Role: chat.Assistant, Calls: []chat.Call{{ID: "a", Name: "count", Arguments: `{}`}, {ID: "b", Name: "count", Arguments: `{}`}}},
		{Role: chat.ToolRole, Call: "a", Text: "3"},
		{Role: chat.ToolRole, Call: "b", Text: ""},
	}}
	if _, err := m.Next(t.Context(), ask, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	q := s.Questions()[0]
	if q.Messages[1].Content != nil || q.Messages[2].Text() != "3" || q.ToolChoice != "" {
		t.Errorf("asked %+v", q)
	}
	if m.Name() != "m" {
		t.Errorf("name %q", m.Name())
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	for name, tt := range map[string]struct {
		step     modeltest.Step
		code     cove.Code
		message  string
		streamed bool
	}{
		"401":           {modeltest.Refuse(401, "bad key "+key), cove.Unavailable, "does not accept the key in COVE_MODEL_KEY", false},
		"403":           {modeltest.Refuse(403, "no"), cove.Unavailable, "does not accept the key", true},
		"404":           {modeltest.Refuse(404, "no"), cove.Unavailable, "has no chat/completions, or no model m", false},
		"405":           {modeltest.Page(405), cove.Unavailable, "has no chat/completions", false},
		"413":           {modeltest.Refuse(413, "no"), cove.Unavailable, "too long for the model", false},
		"400":           {modeltest.Refuse(400, "maximum\ncontext \x1b[31mlength, key "+key), cove.Unavailable, "does not take the question: maximum context [31mlength, key (secret)", false},
		"422 page":      {modeltest.Page(422), cove.Unavailable, "does not answer as a model does", false},
		"400 long":      {modeltest.Refuse(400, strings.Repeat("ä", 400)), cove.Unavailable, "ä…", false},
		"429":           {modeltest.Refuse(429, "slow down"), cove.Exhausted, "no more questions for now", false},
		"429 long wait": {modeltest.Refuse(429, "slow down", "Retry-After", "17"), cove.Exhausted, "no more questions for now", true},
		"500":           {modeltest.Refuse(500, "oops"), cove.Unavailable, "trouble of its own (status 500)", false},
		"502 page":      {modeltest.Page(502), cove.Unavailable, "trouble of its own (status 502)", true},
		"503":           {modeltest.Refuse(503, "full"), cove.Unavailable, "trouble of its own (status 503)", false},
		"redirect":      {redirect, cove.Unavailable, "does not answer as a model does", false},
		"page":          {modeltest.Page(200), cove.Unavailable, "does not answer as a model does", true},
		"no JSON":       {modeltest.Raw(200, "application/json", "{"), cove.Unavailable, "does not answer as a model does", false},
		"no choice":     {modeltest.Raw(200, "application/json", `{"choices":[]}`), cove.Unavailable, "does not answer as a model does", false},
		"other JSON":    {modeltest.Raw(200, "application/json", `{"models":[1]}`), cove.Unavailable, "does not answer as a model does", true},
		"wrong types":   {modeltest.Raw(200, "application/json", `{"choices":[{"message":{"content":7}}]}`), cove.Unavailable, "does not answer as a model does", false},
		"error in 200":  {modeltest.Raw(200, "application/json", `{"error":{"message":"`+key+`"}}`), cove.Unavailable, "broke off its answer with an error", false},
		"long":          {modeltest.Raw(200, "application/json", `{"x":"`+long+`"}`), cove.Unavailable, "longer than 4 MiB", false},
		"endless":       {modeltest.Endless(), cove.Unavailable, "longer than 4 MiB", true},
		"cut":           {modeltest.Cut("There a"), cove.Unavailable, "broke off in the middle", true},
		"cut whole":     {cutWhole, cove.Unavailable, "broke off in the middle", false},
		"no end":        {modeltest.Raw(200, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"), cove.Unavailable, "broke off in the middle", true},
		"empty stream":  {modeltest.Raw(200, "text/event-stream", ""), cove.Unavailable, "broke off in the middle", true},
		"stream error":  {modeltest.Raw(200, "text/event-stream", "data: {\"error\":{\"message\":\"overloaded "+key+"\"}}\n\n"), cove.Unavailable, "broke off its answer with an error", true},
		"stream noise":  {modeltest.Raw(200, "text/event-stream", "data: noise\n\n"), cove.Unavailable, "does not answer as a model does", true},
		"long line":     {modeltest.Raw(200, "text/event-stream", "data: "+long[:3<<20]), cove.Unavailable, "broke off in the middle", true},
		"many calls":    {manyCalls, cove.Unavailable, "asks for too much at once", true},
	} {
		t.Run(name, func(t *testing.T) {
			m, s, log := model(t, tt.step)
			on := func(string) {}
			if !tt.streamed {
				on = nil
			}
			_, err := m.Next(t.Context(), question, on)
			if cove.CodeOf(err) != tt.code || !strings.Contains(cove.MessageOf(err), tt.message) {
				t.Errorf("%v", err)
			}
			if cove.RemedyOf(err) == "" {
				t.Errorf("%v has no remedy", err)
			}
			if e := err.Error(); strings.Contains(e, key) || strings.Contains(log.String(), key) || strings.Contains(e, s.URL()) {
				t.Errorf("the key or the address is in %s or in %s", e, log)
			}
			if e, ok := errors.AsType[*cove.Error](err); ok && tt.code == cove.Exhausted {
				if want := map[bool]int{false: 5, true: 17}[tt.streamed]; e.Details["retry_after"] != want {
					t.Errorf("details %v", e.Details)
				}
			}
			if err := s.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func redirect(w http.ResponseWriter, r *http.Request, _ modeltest.Question) {
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

func cutWhole(w http.ResponseWriter, _ *http.Request, _ modeltest.Question) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"choices":`))
}

func manyCalls(w http.ResponseWriter, _ *http.Request, q modeltest.Question) {
	s := modeltest.Begin(w, q)
	for i := range 100 {
		s.Delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": "x", "function": map[string]any{"name": "f"}}}}, nil)
	}
	s.Data("[DONE]")
}

// TestAskedToWait: a short wait that the server asks for is taken once, and told.
func TestAskedToWait(t *testing.T) {
	past := time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)
	for _, after := range []string{"0", past} {
		m, s, log := model(t, modeltest.Refuse(429, "slow down", "Retry-After", after), modeltest.Say("Three."))
		r, err := m.Next(t.Context(), question, nil)
		if err != nil || r.Text != "Three." || s.Err() != nil {
			t.Errorf("%v %v %v", r, err, s.Err())
		}
		if !strings.Contains(log.String(), "is asked again") || !strings.Contains(log.String(), "status=429") {
			t.Errorf("log %q", log)
		}
	}
	m, s, _ := model(t, modeltest.Refuse(503, "full", "Retry-After", "0"), modeltest.Refuse(503, "full", "Retry-After", "0"))
	if _, err := m.Next(t.Context(), question, nil); cove.CodeOf(err) != cove.Unavailable || s.Err() != nil {
		t.Errorf("%v %v", err, s.Err())
	}
	m, _, _ = model(t, modeltest.Refuse(429, "slow down", "Retry-After", "4"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := m.Next(ctx, question, nil); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("who left while it waited: %v", err)
	}
}

func TestTime(t *testing.T) {
	for name, step := range map[string]modeltest.Step{
		"silent": modeltest.Silent(),
		"halts": func(w http.ResponseWriter, r *http.Request, q modeltest.Question) {
			modeltest.Begin(w, q).Delta(map[string]any{"content": "a"}, nil)
			<-r.Context().Done()
		},
	} {
		s := modeltest.New(modeltest.Config{Steps: []modeltest.Step{step}})
		t.Cleanup(s.Close)
		m, _ := at(t, s.URL(), "", "m", 50*time.Millisecond)
		_, err := m.Next(t.Context(), question, func(string) {})
		if cove.CodeOf(err) != cove.Timeout || !strings.Contains(cove.MessageOf(err), "after 50ms") || !strings.Contains(cove.RemedyOf(err), "COVE_MODEL_TIMEOUT_SEC") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, _, _ := model(t, modeltest.Silent())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := m.Next(ctx, question, nil); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("who left: %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	s := modeltest.New(modeltest.Config{})
	url := s.URL()
	s.Close()
	m, _ := at(t, strings.Replace(url, "http://", "http://user:hunter22@", 1)+"?api-version=abcdef", key, "m", time.Second)
	_, err := m.Next(t.Context(), question, nil)
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), "the model does not answer") {
		t.Errorf("%v", err)
	}
	for _, secret := range []string{key, "hunter22", "abcdef"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v has %s in it", err, secret)
		}
	}
}

func TestKeys(t *testing.T) {
	s := modeltest.New(modeltest.Config{Key: key, Model: "m"})
	t.Cleanup(s.Close)
	for _, tt := range []struct{ key, name, want string }{
		{"", "m", "wants a key, and COVE_MODEL_KEY is not set"},
		{"sk-wrong", "m", "does not accept the key"},
		{key, "other", "no model other"},
		{key, "m", "trouble of its own"}, // the script is over
	} {
		m, _ := at(t, s.URL()+"/", tt.key, tt.name, time.Second)
		_, err := m.Next(t.Context(), question, nil)
		if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), tt.want) {
			t.Errorf("%v: %v", tt, err)
		}
		if tt.key != "" && strings.Contains(err.Error(), tt.key) {
			t.Errorf("the key is in %v", err)
		}
	}
}

func TestBadConfig(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct {
		cfg  openai.Config
		want string
	}{
		{openai.Config{URL: "ftp://x", Model: "m", Timeout: 1, Logger: log}, "COVE_MODEL_URL is no URL"},
		{openai.Config{URL: "http://user:pw@\x00", Model: "m", Timeout: 1, Logger: log}, "COVE_MODEL_URL is no URL"},
		{openai.Config{URL: "http://x", Timeout: 1, Logger: log}, "COVE_MODEL is not set"},
		{openai.Config{URL: "http://x", Model: "m", Logger: log}, "needs a timeout"},
	} {
		if _, err := openai.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func TestUnwritable(t *testing.T) {
	m, _ := at(t, "http://127.0.0.1:1", "", "m", time.Second)
	_, err := m.Next(t.Context(), chat.Ask{Tools: []chat.Tool{{Parameters: json.RawMessage("{")}}}, nil)
	if cove.CodeOf(err) != cove.Internal {
		t.Errorf("%v", err)
	}
}
