package egress_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cove-sandbox/cove/internal/egress"
)

func question(t *testing.T, name string, kind dnsmessage.Type, change func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	if change != nil {
		change(&m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask sends a packet and waits for the answer.
func (in *inside) ask(query []byte) (*dnsmessage.Message, error) {
	c, err := (&net.Dialer{}).DialContext(in.t.Context(), "udp", in.dns)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 2048)
	n, err := c.Read(b)
	if err != nil {
		return nil, err
	}
	var m dnsmessage.Message
	return &m, m.Unpack(b[:n])
}

func TestAnswers(t *testing.T) {
	in := open(t, newWorld(), allow("good.test", "*.wild.test"))
	for _, c := range []struct {
		name    string
		kind    dnsmessage.Type
		change  func(*dnsmessage.Message)
		code    dnsmessage.RCode
		answers int
	}{
		{name: "good.test.", kind: dnsmessage.TypeA, answers: 1},
		{name: "GoOd.TeSt.", kind: dnsmessage.TypeA, answers: 1},
		{name: "a.b.wild.test.", kind: dnsmessage.TypeA, answers: 1},
		{name: "good.test.", kind: dnsmessage.TypeAAAA},
		{name: "good.test.", kind: dnsmessage.TypeTXT},
		{name: "good.test.", kind: dnsmessage.TypeMX},
		{name: "good.test.", kind: dnsmessage.Type(65)},
		{name: "wild.test.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNameError},
		{name: "evil.test.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNameError},
		{name: "evil.test.", kind: dnsmessage.TypeTXT, code: dnsmessage.RCodeNameError},
		{name: ".", kind: dnsmessage.TypeNS, code: dnsmessage.RCodeNameError},
		{name: "a b\x01.wild.test.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNameError},
		{name: "good.test.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNotImplemented, change: func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }},
		{name: "good.test.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNotImplemented, change: func(m *dnsmessage.Message) { m.OpCode = 5 }},
	} {
		m, err := in.ask(question(t, c.name, c.kind, c.change))
		if err != nil {
			t.Fatalf("%s %s: %v", c.name, c.kind, err)
		}
		if m.ID != 7 || !m.Response || m.RCode != c.code || len(m.Answers) != c.answers || len(m.Questions) != 1 || m.Questions[0].Name.String() != c.name {
			t.Errorf("%s %s: %s", c.name, c.kind, m.GoString())
		}
		for _, a := range m.Answers {
			if r, ok := a.Body.(*dnsmessage.AResource); !ok || r.A[0] != 127 || r.A[1] < 64 || a.Header.Name.String() != c.name {
				t.Errorf("%s: %s", c.name, a.GoString())
			}
		}
	}
	if c := in.line("a?b?.wild.test"); c.Allowed {
		t.Errorf("line: %+v", c)
	}
}

// What is no question gets no answer, and what comes after it does.
func TestMalformed(t *testing.T) {
	in := open(t, newWorld(), allow("good.test"))
	good := question(t, "good.test.", dnsmessage.TypeA, nil)
	two := question(t, "good.test.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) })
	answer := question(t, "good.test.", dnsmessage.TypeA, func(m *dnsmessage.Message) { m.Response = true })
	loop := append(append([]byte{}, good[:12]...), 0xc0, 12, 0, 1, 0, 1)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", in.dns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, b := range [][]byte{nil, {0}, good[:11], good[:20], two, answer, loop, make([]byte, 4000), make([]byte, 1232)} {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write(good); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2048)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := c.Read(b)
	var m dnsmessage.Message
	if err != nil || m.Unpack(b[:n]) != nil || len(m.Answers) != 1 {
		t.Errorf("after all that: %v %s", err, m.GoString())
	}
}

func TestStream(t *testing.T) {
	in := open(t, newWorld(), allow("good.test"))
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", in.over)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	q := question(t, "good.test.", dnsmessage.TypeA, nil)
	for range 3 {
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
			t.Fatal(err)
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint16(size[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(c, b); err != nil || m.Unpack(b) != nil || len(m.Answers) != 1 {
			t.Errorf("%v %s", err, m.GoString())
		}
	}
	for _, bad := range [][]byte{{0xff, 0xff}, {0, 3, 1, 2, 3}} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", in.over)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(bad)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
			t.Errorf("%x was answered", bad)
		}
		c.Close()
	}
	// Those who say nothing do not keep others out for long, nor are they many.
	var open []net.Conn
	for range 40 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", in.over)
		if err != nil {
			break
		}
		open = append(open, c)
	}
	shut := 0
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			shut++
		}
		c.Close()
	}
	if shut < 20 {
		t.Errorf("only %d of 40 were shut out", shut)
	}
}

// Ten thousand names are a way to say something to whoever answers for a domain.
// Few are taken, none leaves the host, and it is written down.
func TestTunnel(t *testing.T) {
	w := newWorld()
	w.put("first.wild.test", site(t), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := allow("*.wild.test:%")(port)
		c.Limits = egress.Limits{Names: 100, Queries: 1 << 15}
		return c
	})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", in.dns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// What was allowed is not forgotten over what is refused.
	if text, err := in.get(in.url("first.wild.test")); err != nil {
		t.Fatal(text, err)
	}
	in.line("first.wild.test")
	answered, refused := 1, 0
	b := make([]byte, 2048)
	for i := range 10_000 {
		if _, err := c.Write(question(t, fmt.Sprintf("data%d.wild.test.", i), dnsmessage.TypeA, nil)); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := c.Read(b)
		var m dnsmessage.Message
		if err != nil || m.Unpack(b[:n]) != nil {
			t.Fatal(i, err)
		}
		switch {
		case len(m.Answers) == 1:
			answered++
		case m.RCode == dnsmessage.RCodeRefused:
			refused++
		}
	}
	if answered != 100 || refused != 9901 {
		t.Errorf("%d answered, %d refused", answered, refused)
	}
	if looked := w.lookups(); len(looked) != 1 {
		t.Errorf("%d names left the host", len(looked))
	}
	if c := in.line("data99.wild.test"); c.Allowed || !strings.Contains(c.Why, "too many names") {
		t.Errorf("line: %+v", c)
	}
	if all := in.Connections(0); len(all) != 2049 || all[0].Host != "first.wild.test" || all[1].Number != 9902-2047 || all[2048].Number != 9902 {
		t.Errorf("%d are kept, from %+v", len(all), all[0])
	}
}

func TestFlood(t *testing.T) {
	in := open(t, newWorld(), func(port int) egress.Config {
		c := allow("good.test:%")(port)
		c.Limits = egress.Limits{Queries: 5}
		return c
	})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", in.dns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := question(t, "evil.test.", dnsmessage.TypeA, nil)
	for range 200 {
		_, _ = c.Write(q)
	}
	if c := in.line(""); c.Allowed || !strings.Contains(c.Why, "too many questions") {
		t.Errorf("line: %+v", c)
	}
	if n := len(in.Connections(0)); n > 40 {
		t.Errorf("%d lines for 200 questions", n)
	}
}

func FuzzQuery(f *testing.F) {
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04good\x04test\x00\x00\x01\x00\x01"))
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := egress.ParseQuery(b)
		if err != nil {
			return
		}
		if clean, ok := egress.CleanName(name); ok && (len(clean) > 253 || strings.ToLower(clean) != clean || strings.HasSuffix(clean, ".")) {
			t.Errorf("%q is said to be clean", clean)
		}
	})
}
