package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Callers are not operators: where the endpoint is and what it says about a fault
// is in the cause, which is logged. Only what it says of the request itself, such as
// that a conversation is too long, is shown.

// unreachable is the error where no answer began.
func (m *Model) unreachable(ctx context.Context, cause error) error {
	if err := m.late(ctx); err != nil {
		return err
	}
	if u, ok := errors.AsType[*url.Error](cause); ok {
		cause = u.Err // without the address, which may hold a secret
	}
	return cove.Wrap(cove.Unavailable, cause, "the model does not answer").Reason(cove.ReasonConnection).
		Remedy("check COVE_MODEL_URL, and that this machine reaches it")
}

// broken is the error where an answer began and did not come to its end.
func (m *Model) broken(ctx context.Context, cause error) error {
	if err := m.late(ctx); err != nil {
		return err
	}
	if errors.Is(cause, errLong) {
		return cove.Wrap(cove.Unavailable, cause, "the model's answer is longer than %d MiB", maxAnswer>>20).Reason(cove.ReasonConnection).
			Remedy("ask for less")
	}
	return cove.Wrap(cove.Unavailable, cause, "the model's answer broke off in the middle").Reason(cove.ReasonConnection).
		Remedy("send the message again")
}

// late is the error where the time is over or the caller left, and nil otherwise.
func (m *Model) late(ctx context.Context) error {
	why := context.Cause(ctx)
	if errors.Is(why, errSlow) {
		return cove.Wrap(cove.Timeout, why, "the model had no whole answer after %s", m.within).
			Remedy("ask for less, or raise COVE_MODEL_TIMEOUT_SEC")
	}
	return why
}

// midway is the error where an answer holds what no answer has.
func (m *Model) midway(cause error) error {
	if said, ok := isSaid(cause); ok {
		return cove.Wrap(cove.Unavailable, m.heard(http.StatusOK, said), "the model broke off its answer with an error").Reason(cove.ReasonConnection).
			Remedy("send the message again; the log has what the model's server said")
	}
	return cove.Wrap(cove.Unavailable, cause, "the model asks for too much at once").Remedy("ask for less, or choose another model")
}

// stranger is the error where what answers is no such endpoint.
func (m *Model) stranger(status int, said []byte) error {
	return cove.Wrap(cove.Unavailable, m.heard(status, said), "what is at COVE_MODEL_URL does not answer as a model does").Reason(cove.ReasonConfiguration).
		Remedy("check COVE_MODEL_URL: it is the base of the API, which often ends in /v1")
}

// refused is the error for an answer with another status than 200.
func (m *Model) refused(res *http.Response, said []byte) error {
	cause := m.heard(res.StatusCode, said)
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if m.key == "" {
			return cove.Wrap(cove.Unavailable, cause, "the model wants a key, and COVE_MODEL_KEY is not set").Reason(cove.ReasonConfiguration).
				Remedy("set COVE_MODEL_KEY")
		}
		return cove.Wrap(cove.Unavailable, cause, "the model does not accept the key in COVE_MODEL_KEY").Reason(cove.ReasonConfiguration).
			Remedy("set COVE_MODEL_KEY to one that may use the model %s", m.name)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return cove.Wrap(cove.Unavailable, cause, "COVE_MODEL_URL has no chat/completions, or no model %s", m.name).Reason(cove.ReasonConfiguration).
			Remedy("check COVE_MODEL_URL, which often ends in /v1, and COVE_MODEL")
	case code == http.StatusTooManyRequests:
		wait, ok := retryAfter(res.Header, time.Now())
		if !ok {
			wait = maxWait
		}
		return cove.Wrap(cove.Exhausted, cause, "the model takes no more questions for now").Reason(cove.ReasonRateLimited).
			With("retry_after", max(1, int((wait+time.Second-1)/time.Second))).Remedy("ask again later, or raise the limits at the model's operator")
	case code == http.StatusRequestEntityTooLarge:
		return cove.Wrap(cove.Unavailable, cause, "the conversation is too long for the model").Remedy("begin a new thread")
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		if why := m.why(said); why != "" {
			return cove.Wrap(cove.Unavailable, cause, "the model does not take the question: %s", why).
				Remedy("begin a new thread, or choose a model that knows tools")
		}
	case code >= http.StatusInternalServerError:
		return cove.Wrap(cove.Unavailable, cause, "the model has trouble of its own (status %d)", code).Reason(cove.ReasonConnection).
			Remedy("try again later")
	}
	return m.stranger(res.StatusCode, said)
}

// heard is what an endpoint said, for the log.
func (m *Model) heard(status int, said []byte) error {
	return fmt.Errorf("status %d: %.500q", status, m.without(string(said)))
}

// why is the message of an error as such endpoints write it, or "".
func (m *Model) why(said []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(said, &e) != nil {
		return ""
	}
	text := strings.Join(strings.Fields(m.without(e.Error.Message)), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

// without hides what is secret in what was said: some servers and proxies repeat
// what they were asked.
func (m *Model) without(said string) string {
	for _, s := range m.secrets {
		said = strings.ReplaceAll(said, s, "(secret)")
	}
	return said
}

// secretsOf are the texts that nobody may read in a log.
func secretsOf(base *url.URL, key string) []string {
	password, _ := base.User.Password()
	all := []string{key, password}
	for _, values := range base.Query() {
		all = append(all, values...)
	}
	var out []string
	for _, s := range all {
		if len(s) >= minSecret {
			out = append(out, s)
		}
	}
	return out
}

// minSecret is the shortest text that is hidden: shorter ones are in everything.
const minSecret = 4

// retryAfter is how long an endpoint asks to be left alone, and whether it asks.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, time.Hour), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), time.Hour), true
	}
	return 0, false
}
