package e2btest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// inside answers for the daemon of a machine.
func (s *Server) inside(w http.ResponseWriter, r *http.Request, id string) {
	m := s.find(id)
	if m == nil {
		answer(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": http.StatusBadGateway})
		return
	}
	if r.URL.Path != "/health" && r.Header.Get("X-Access-Token") != m.token {
		fail(w, http.StatusUnauthorized, "the token is not the machine's")
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /health":
		w.WriteHeader(http.StatusNoContent)
	case "POST /files":
		m.write(w, r)
	case "POST /process.Process/Start":
		m.start(w, r)
	case "POST /process.Process/Connect":
		m.follow(w, r)
	case "POST /process.Process/List":
		m.list(w)
	case "POST /process.Process/SendInput":
		m.input(w, r)
	case "POST /process.Process/CloseStdin":
		m.closeInput(w, r)
	case "POST /process.Process/SendSignal":
		m.signal(w, r)
	default:
		http.NotFound(w, r)
	}
}

// refuse answers with an error as procedures have them.
func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]string{"code": code, "message": message})
}

func (m *machine) write(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("path")
	err := m.box.Files().Write(r.Context(), name, r.Body, 0o644)
	if err != nil {
		status := http.StatusBadRequest
		if cove.CodeOf(err) == cove.Exhausted {
			status = http.StatusInsufficientStorage
		}
		fail(w, status, cove.MessageOf(err))
		return
	}
	answer(w, http.StatusOK, []map[string]string{{"name": name[strings.LastIndexByte(name, '/')+1:], "path": name, "type": "file"}})
}

// which names a process of a machine, with what is to be done to it.
type which struct {
	Process struct {
		PID int `json:"pid"`
	} `json:"process"`
	Input struct {
		Stdin []byte `json:"stdin"`
	} `json:"input"`
	Signal string `json:"signal"`
}

// named finds the process that a request names, or answers that there is none.
func (m *machine) named(w http.ResponseWriter, body io.Reader) (*process, which) {
	var in which
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_argument", err.Error())
		return nil, in
	}
	m.mu.Lock()
	p := m.procs[in.Process.PID]
	m.mu.Unlock()
	if p == nil {
		refuse(w, http.StatusNotFound, "not_found", "process not found")
	}
	return p, in
}

func (m *machine) input(w http.ResponseWriter, r *http.Request) {
	p, in := m.named(w, r.Body)
	if p == nil {
		return
	}
	if _, err := p.stdin.Write(in.Input.Stdin); err != nil {
		refuse(w, http.StatusNotFound, "not_found", "its input is closed")
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

func (m *machine) closeInput(w http.ResponseWriter, r *http.Request) {
	if p, _ := m.named(w, r.Body); p != nil {
		_ = p.stdin.Close()
		answer(w, http.StatusOK, struct{}{})
	}
}

func (m *machine) signal(w http.ResponseWriter, r *http.Request) {
	p, in := m.named(w, r.Body)
	if p == nil {
		return
	}
	sig, err := cove.ParseSignal(strings.TrimPrefix(in.Signal, "SIGNAL_"))
	if err == nil {
		err = p.proc.Signal(r.Context(), sig)
	}
	if err != nil {
		refuse(w, http.StatusNotFound, "not_found", cove.MessageOf(err))
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

func (m *machine) list(w http.ResponseWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []map[string]any{}
	for pid, p := range m.procs {
		list = append(list, map[string]any{"pid": pid, "tag": p.tag, "config": p.config})
	}
	answer(w, http.StatusOK, map[string]any{"processes": list})
}

func (m *machine) follow(w http.ResponseWriter, r *http.Request) {
	body, err := message(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_argument", err.Error())
		return
	}
	if p, _ := m.named(w, strings.NewReader(string(body))); p != nil {
		p.show(w, r, p.listen())
	}
}

// message reads the one message of a request for a stream.
func message(r io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := int(head[1])<<24 | int(head[2])<<16 | int(head[3])<<8 | int(head[4])
	if n > 1<<20 {
		return nil, errors.New("the message is too long")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	_, err := io.Copy(io.Discard, r) // the server reads on while the answer is written
	return body, err
}

// frame writes one message of a stream.
func frame(w http.ResponseWriter, flag byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n := len(body)
	head := []byte{flag, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} //nolint:gosec // the bytes of a number
	if _, err := w.Write(append(head, body...)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// pinging is how often a stream that is silent says that it lives.
func pinging(r *http.Request) time.Duration {
	n, err := strconv.Atoi(r.Header.Get("Keepalive-Ping-Interval"))
	if err != nil || n < 1 {
		return time.Minute
	}
	return time.Duration(n) * time.Second
}
