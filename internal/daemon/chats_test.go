package daemon_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/chat/modeltest"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// lines is a log that a test reads while a server writes it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const modelKey = "sk-model-0123456789"

// talking starts a scripted model and a server that asks it, and returns a client and
// the server's log.
func talking(t *testing.T, steps ...modeltest.Step) (cove.Platform, *modeltest.Server, *lines) {
	t.Helper()
	m := modeltest.New(modeltest.Config{Key: modelKey, Model: "m", Steps: steps})
	t.Cleanup(m.Close)
	log := &lines{}
	r, _ := serve(t, settings(t, "COVE_MODEL_URL", m.URL(), "COVE_MODEL_KEY", modelKey, "COVE_MODEL", "m", "COVE_MODEL_ROUNDS", "3"),
		daemon.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return dial(t, r.URL, strings.TrimSpace(string(key))), m, log
}

// TestChat asks a server over HTTP, which asks a model over HTTP, which asks for a run.
func TestChat(t *testing.T) {
	sql := modeltest.Call{Name: "run_sql", Arguments: `{"sql":"rows 2"}`}
	answer := modeltest.SayOf(func(q modeltest.Question) string {
		if !strings.Contains(q.Last(), `"rows":[[1],[2]]`) {
			return "I was told " + q.Last()
		}
		return "There are 2."
	})
	p, m, log := talking(t, modeltest.Use(sql), answer, modeltest.Use(sql), answer, modeltest.Refuse(401, "no such key: "+modelKey), modeltest.Use(sql), modeltest.Use(sql), modeltest.Use(sql))
	var text strings.Builder
	var kinds []string
	for i, on := range []func(cove.ChatEvent){nil, func(e cove.ChatEvent) {
		if e.Kind == cove.ChatToken {
			text.WriteString(e.Text)
		} else {
			kinds = append(kinds, string(e.Kind)+" "+e.Tool)
		}
	}} {
		a, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: "How many?", OnEvent: on})
		if err != nil {
			t.Fatal(err)
		}
		if a.Message.Text != "There are 2." || a.Query != "rows 2" || a.Type != cove.QuerySQL || a.Rounds != 2 || a.Model != "m" || a.Result == nil || a.Result.Answer.RowCount != 2 || a.Result.Request.Thread != "t" {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if got := strings.Join(kinds, ", "); text.String() != "There are 2." || got != "tool_call run_sql, run " {
		t.Errorf("streamed %q and %q", text.String(), got)
	}
	// The second question came with the first and its answer.
	if q := m.Questions()[2]; len(q.Messages) != 4 || q.Messages[2].Text() != "There are 2.\n\n(The last query was: rows 2)" {
		t.Errorf("asked %+v", q.Messages)
	}
	_, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: "And now?"})
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(cove.MessageOf(err), "does not accept the key in COVE_MODEL_KEY") || strings.Contains(err.Error(), modelKey) {
		t.Errorf("a key that is refused: %v", err)
	}
	a, err := p.Chats().Send(t.Context(), cove.ChatRequest{Thread: "t", Message: "And now?"})
	if err != nil || a.Stopped != cove.ChatRounds || a.Rounds != 3 {
		t.Errorf("a model without an end: %+v, %v", a, err)
	}
	n := 0
	for msg, err := range p.Chats().Messages(t.Context(), cove.MessageFilter{Thread: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 6 && (msg.Stopped != cove.ChatRounds || msg.Model != "m" || len(msg.Runs) != 2) {
			t.Errorf("kept is %+v", msg)
		}
	}
	if n != 6 || m.Err() != nil {
		t.Errorf("%d messages, %v", n, m.Err())
	}
	if text := log.String(); strings.Contains(text, modelKey) {
		t.Errorf("the key is in the log:\n%s", text)
	}
}

// TestChatWithoutAModel: queries are answered, and for the rest the settings that are
// missing are named.
func TestChatWithoutAModel(t *testing.T) {
	for _, tt := range []struct {
		pairs []string
		want  string
	}{
		{nil, "natural language needs a model, and COVE_MODEL_URL and COVE_MODEL are not set"},
		{[]string{"COVE_MODEL_URL", "http://127.0.0.1:1/v1"}, "natural language needs a model, and COVE_MODEL is not set"},
		{[]string{"COVE_MODEL_URL", "http://127.0.0.1:1/v1", "COVE_MODEL_KEY", modelKey}, "natural language needs a model, and COVE_MODEL is not set"},
	} {
		w := plug(t, tt.pairs...)
		if status, text := w.tool("/api/chat", `{"message":"SQL: rows 3"}`); status != 200 || !strings.Contains(text, `"answer":"3 rows."`) {
			t.Errorf("%d %s", status, text)
		}
		if status, text := w.tool("/api/chat", `{"message":"How many?"}`); status != 501 || !strings.Contains(text, tt.want) || strings.Contains(text, modelKey) {
			t.Errorf("%d %s", status, text)
		}
	}
}
