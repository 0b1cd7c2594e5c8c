//go:build linux

package agent_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// rewind reads a tape that has ended from its first byte on.
func rewind(t *testing.T, tape *agent.Tape) (out, errs string) {
	t.Helper()
	f := agent.Join(tape, false)
	defer agent.Leave(tape, f)
	var all bytes.Buffer
	for {
		lost, b, end, ok := agent.Next(tape, f, nil)
		if !ok {
			t.Fatal("the tape has no end")
		}
		if end {
			return played(t, &all)
		}
		all.Write(lost)
		all.Write(b)
		agent.Moved(tape, f, len(b))
	}
}

// played is what is in records.
func played(t *testing.T, records io.Reader) (out, errs string) {
	t.Helper()
	var said, wrong strings.Builder
	r := protocol.NewRecordReader(records)
	for {
		kind, b, err := r.Next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return said.String(), wrong.String()
		case err != nil:
			t.Fatal(err)
		case kind == protocol.RecordErrs:
			wrong.Write(b)
		case kind == protocol.RecordLost:
		default:
			said.Write(b)
		}
	}
}

const piece = 1 << 10

// letters is a text whose every piece is another.
func letters(pieces int) string {
	var b strings.Builder
	for i := range pieces {
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), piece))
	}
	return b.String()
}

func TestTapeIsWhole(t *testing.T) {
	tape := agent.NewTape(&agent.Room{}, 16<<20)
	want := letters(600)
	for i := range 600 {
		agent.Write(tape, protocol.RecordData, []byte(want[i*piece:(i+1)*piece]))
		agent.Write(tape, protocol.RecordErrs, []byte{'x'})
	}
	agent.End(tape)
	for range 2 {
		out, errs := rewind(t, tape)
		if out != want || errs != strings.Repeat("x", 600) {
			t.Errorf("%d and %d bytes came back", len(out), len(errs))
		}
	}
}

// TestTapeIsBounded: of more than there is room for, the first and the last stay.
func TestTapeIsBounded(t *testing.T) {
	const most, pieces = 256 << 10, 4096
	tape := agent.NewTape(&agent.Room{}, most)
	agent.Leave(tape, agent.Join(tape, false)) // nobody follows
	all := letters(pieces)
	for i := range pieces {
		agent.Write(tape, protocol.RecordData, []byte(all[i*piece:(i+1)*piece]))
	}
	agent.End(tape)
	out, _ := rewind(t, tape)
	if len(out) < most || len(out) > 2*most+128<<10 {
		t.Errorf("%d bytes are kept", len(out))
	}
	const surely = 200 << 10
	if out[:surely] != all[:surely] || out[len(out)-surely/2:] != all[len(all)-surely/2:] {
		t.Error("neither the beginning nor the end may be missing")
	}
}

// TestTapesShareRoom: many of them have no more than some.
func TestTapesShareRoom(t *testing.T) {
	var room agent.Room
	const most = 1 << 20
	fill := func() (*agent.Tape, int) {
		tape := agent.NewTape(&room, most)
		agent.Leave(tape, agent.Join(tape, false))
		for range 2 * most / piece {
			agent.Write(tape, protocol.RecordData, make([]byte, piece))
		}
		agent.End(tape)
		out, _ := rewind(t, tape)
		return tape, len(out)
	}
	total := 0
	var first *agent.Tape
	for i := range 20 {
		tape, n := fill()
		if i == 0 {
			first = tape
		}
		total += n
	}
	if total > 4*most+20*(512<<10) {
		t.Errorf("%d bytes are kept of all", total)
	}
	if _, n := fill(); n > 512<<10 {
		t.Errorf("%d bytes are kept where there is no room", n)
	}
	agent.Forget(first)
	if _, n := fill(); n < most/2 {
		t.Errorf("%d bytes are kept where one has made room", n)
	}
}

// TestTapeWaitsForTheFirst: who started a program and comes late to follow it misses
// nothing.
func TestTapeWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := agent.NewTape(&agent.Room{}, 64<<10)
		const pieces = 2048
		want := letters(pieces)
		go func() {
			for i := range pieces {
				agent.Write(tape, protocol.RecordData, []byte(want[i*piece:(i+1)*piece]))
			}
			agent.End(tape)
		}()
		synctest.Wait()
		if out, _ := rewind(t, tape); out != want {
			t.Errorf("he got %d of %d bytes", len(out), len(want))
		}
	})
}

// TestTapeWaitsForFollowers: who reads along misses nothing, and who stops reading
// does not hold up the program for long.
func TestTapeWaitsForFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := agent.NewTape(&agent.Room{}, 64<<10)
		reads, sleeps := agent.Join(tape, false), agent.Join(tape, false)
		const pieces = 2048
		want := letters(pieces)
		go func() {
			for i := range pieces {
				agent.Write(tape, protocol.RecordData, []byte(want[i*piece:(i+1)*piece]))
			}
			agent.End(tape)
		}()
		synctest.Wait()
		var all bytes.Buffer
		for {
			_, b, end, ok := agent.Next(tape, reads, nil)
			if !ok {
				t.Fatal("the tape is gone")
			}
			if end {
				break
			}
			all.Write(b)
			agent.Moved(tape, reads, len(b))
		}
		if out, _ := played(t, &all); out != want {
			t.Errorf("who reads along got %d of %d bytes", len(out), len(want))
		}
		agent.Leave(tape, sleeps)
	})
}

// TestTapeWaitsForTheOnlyOne: who says that nobody else will ever follow misses
// nothing, however long he takes.
func TestTapeWaitsForTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := agent.NewTape(&agent.Room{}, 64<<10)
		agent.Write(tape, protocol.RecordData, []byte("+"))
		agent.Leave(tape, agent.Join(tape, false)) // who was there before
		only := agent.Join(tape, true)
		const pieces = 1024
		want := letters(pieces)
		go func() {
			for i := range pieces {
				agent.Write(tape, protocol.RecordData, []byte(want[i*piece:(i+1)*piece]))
			}
			agent.End(tape)
		}()
		<-time.After(time.Hour)
		var all bytes.Buffer
		for {
			_, b, end, ok := agent.Next(tape, only, nil)
			if !ok {
				t.Fatal("the tape is gone")
			}
			if end {
				break
			}
			all.Write(b)
			agent.Moved(tape, only, len(b))
		}
		if out, _ := played(t, &all); out != "+"+want {
			t.Errorf("he got %d of %d bytes", len(out), 1+len(want))
		}
	})
}

func TestTapeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape := agent.NewTape(&agent.Room{}, 64<<10)
		agent.Write(tape, protocol.RecordData, []byte("x"))
		f := agent.Join(tape, false)
		ended := make(chan bool)
		follow := func(over <-chan struct{}) {
			_, _, _, ok := agent.Next(tape, f, over)
			ended <- ok
		}
		agent.Moved(tape, f, 3)
		over := make(chan struct{})
		go follow(over)
		synctest.Wait()
		close(over)
		if <-ended {
			t.Error("who follows goes on when nobody reads")
		}
		go follow(nil)
		synctest.Wait()
		agent.Forget(tape)
		if <-ended {
			t.Error("who follows goes on when all is forgotten")
		}
		for range 1 << 10 { // a program may go on writing
			agent.Write(tape, protocol.RecordData, make([]byte, piece))
		}
	})
	tape := agent.NewTape(&agent.Room{}, 1)
	for range 16 {
		agent.Join(tape, false)
	}
	if agent.Join(tape, false) != nil {
		t.Error("too many follow")
	}
}

func TestScores(t *testing.T) {
	got := map[string]string{}
	for _, own := range []string{"0\n", "500\n", "900", "-998", ""} {
		got[own] = agent.AheadOf(own)
	}
	if d := cmp.Diff(map[string]string{"0\n": "500", "500\n": "1000", "900": "1000", "-998": "-498", "": ""}, got); d != "" {
		t.Error(d)
	}
}
