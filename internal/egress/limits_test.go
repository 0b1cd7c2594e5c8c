package egress_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

func TestConnectionLimits(t *testing.T) {
	w := newWorld()
	w.put("a.test", echo(t), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := allow("a.test:%")(port)
		c.Limits = egress.Limits{Connections: 2, PerSecond: 4}
		return c
	})
	talk(t, in, "a.test")
	talk(t, in, "a.test")
	if err := cut(in.dial("a.test")); err != nil {
		t.Error(err)
	}
	if c := in.line("a.test"); c.Allowed || !strings.Contains(c.Why, "at once") {
		t.Errorf("line: %+v", c)
	}
	for range 30 {
		if c, err := in.dial("a.test"); err == nil {
			defer c.Close()
		}
	}
	found := false
	for !found {
		found = strings.Contains((<-in.lines).Why, "in a second")
	}
}

func TestIdle(t *testing.T) {
	w := newWorld()
	w.put("a.test", echo(t), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := allow("a.test:%")(port)
		c.Limits = egress.Limits{Idle: 60 * time.Millisecond}
		return c
	})
	c := talk(t, in, "a.test")
	if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Error("it lives")
	}
	if c := in.line("a.test"); !strings.Contains(c.Why, "too long") || !c.Allowed {
		t.Errorf("line: %+v", c)
	}
}

// A side that does not read holds up nothing but itself, and not for ever.
func TestStalledReader(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}()
	w := newWorld()
	w.put("flood.test", l.Addr().String(), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := allow("flood.test:%")(port)
		c.Limits = egress.Limits{Idle: 100 * time.Millisecond}
		return c
	})
	c, err := in.dial("flood.test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c := in.line("flood.test"); !strings.Contains(c.Why, "too long") {
		t.Errorf("line: %+v", c)
	}
}

func TestRate(t *testing.T) {
	w := newWorld()
	w.put("a.test", echo(t), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := allow("a.test:%")(port)
		c.Limits = egress.Limits{Rate: 256 * cove.KiB}
		return c
	})
	c := talk(t, in, "a.test")
	const size = 400 << 10 // both ways: 800k, of which 512k are free at first
	go func() { _, _ = c.Write(make([]byte, size)) }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
}
