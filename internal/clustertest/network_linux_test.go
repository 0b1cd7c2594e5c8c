package clustertest_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/clustertest"
)

// TestCutsAreSilent cuts two of three members off from each other: neither hears
// anything, not even that there is nobody; all others hear all, and after the last
// cut is mended so do they, on the connection that they had.
func TestCutsAreSilent(t *testing.T) {
	const long, short = 20 * time.Second, 300 * time.Millisecond
	n := clustertest.NewNet(t, "a", "b", "c")
	for at := range 3 {
		n.Listen(t, at)
	}
	old, err := n.Dial(t, 0, 1, long)
	if err != nil {
		t.Fatal(err)
	}
	say(t, old, long)
	n.Cut(t, 0, 1)
	n.Cut(t, 1, 0) // another fault wants the same
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		if _, err := n.Dial(t, way[0], way[1], short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("from %d to %d: %v, want silence", way[0], way[1], err)
		}
	}
	if err := exchange(old, short); err == nil {
		t.Error("what was connected before the cut still is")
	}
	for _, way := range [][2]int{{0, 2}, {2, 0}, {1, 2}, {2, 1}, {-1, 0}, {-1, 1}} {
		conn, err := n.Dial(t, way[0], way[1], long)
		if err != nil {
			t.Fatalf("from %d to %d: %v", way[0], way[1], err)
		}
		say(t, conn, long)
	}
	n.Mend(t, 0, 1)
	if _, err := n.Dial(t, 0, 1, short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one of two cuts is mended: %v, want silence", err)
	}
	n.Mend(t, 0, 1)
	conn, err := n.Dial(t, 0, 1, long)
	if err != nil {
		t.Fatal(err)
	}
	say(t, conn, long)
	if err := heard(old, long); err != nil {
		t.Errorf("what was said during the cut never came: %v", err)
	}
}

func say(t *testing.T, conn net.Conn, patience time.Duration) {
	t.Helper()
	if err := exchange(conn, patience); err != nil {
		t.Fatal(err)
	}
}

// exchange sends a byte and waits for it to come back.
func exchange(conn net.Conn, patience time.Duration) error {
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	return heard(conn, patience)
}

func heard(conn net.Conn, patience time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}
