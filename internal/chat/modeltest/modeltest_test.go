package modeltest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/chat/modeltest"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestStrict: what a strict server would refuse is refused, and the script waits for a
// better request.
func TestStrict(t *testing.T) {
	const user = `{"role":"user","content":"a"}`
	calls := func(arguments string) string {
		return user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"` + arguments + `"}}]}`
	}
	for name, body := range map[string]string{
		"no JSON":           `{`,
		"no model":          `{"messages":[` + user + `]}`,
		"no message":        `{"model":"m","messages":[]}`,
		"unknown field":     `{"model":"m","messages":[` + user + `],"temprature":0}`,
		"choice of nothing": `{"model":"m","messages":[` + user + `],"tool_choice":"auto"}`,
		"tool without type": `{"model":"m","messages":[` + user + `],"tool_choice":"auto","tools":[{"function":{"name":"f"}}]}`,
		"unknown role":      `{"model":"m","messages":[{"role":"robot","content":"a"}]}`,
		"no content":        `{"model":"m","messages":[{"role":"user","content":null}]}`,
		"silent assistant":  `{"model":"m","messages":[{"role":"assistant","content":null}]}`,
		"open call":         `{"model":"m","messages":[` + calls("{}") + `]}`,
		"call left open":    `{"model":"m","messages":[` + calls("{}") + `,` + user + `]}`,
		"broken arguments":  `{"model":"m","messages":[` + calls("{") + `,{"role":"tool","tool_call_id":"x","content":""}]}`,
		"answer to no call": `{"model":"m","messages":[` + user + `,{"role":"tool","tool_call_id":"x","content":""}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(modeltest.Config{Steps: []modeltest.Step{modeltest.Say("ok")}})
			defer s.Close()
			status, text := post(t, s.URL()+"/chat/completions", body)
			if status != http.StatusBadRequest || !strings.Contains(text, `"type":"invalid_request_error"`) {
				t.Errorf("%d %s", status, text)
			}
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), "a bad request: ") || !strings.Contains(err.Error(), "1 of 1 steps were not asked for") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestScript(t *testing.T) {
	s := modeltest.New(modeltest.Config{Steps: []modeltest.Step{modeltest.Say("ok")}})
	defer s.Close()
	const body = `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"b"}]}`
	if status, text := post(t, s.URL()+"/chat/completions", body); status != http.StatusOK || !strings.Contains(text, `"content":"ok"`) {
		t.Errorf("%d %s", status, text)
	}
	if q := s.Questions(); s.Err() != nil || len(q) != 1 || q[0].Last() != "b" || q[0].Messages[1].Text() != "" {
		t.Errorf("%v %+v", s.Err(), q)
	}
	if status, _ := post(t, s.URL()+"/chat/completions", body); status != http.StatusInternalServerError || s.Err() == nil {
		t.Errorf("%d after the end, %v", status, s.Err())
	}
	if status, _ := post(t, s.URL()+"/completions", body); status != http.StatusNotFound {
		t.Errorf("%d for another path", status)
	}
}
