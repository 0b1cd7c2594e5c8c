package local_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove/provider/local"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g local.Gate
		leave := g.Enter()
		if g.Close(time.Second) {
			t.Fatal("it closed with somebody inside")
		}
		closed := make(chan bool)
		go func() { closed <- g.Close(time.Hour) }()
		synctest.Wait()
		passed := make(chan struct{})
		go func() {
			g.Enter()()
			close(passed)
		}()
		synctest.Wait()
		leave()
		if !<-closed {
			t.Fatal("it did not close when all had left")
		}
		select {
		case <-passed:
			t.Error("somebody passed it")
		default:
		}
		g.Open()
		<-passed
		end := g.Use()
		if g.Close(time.Hour) {
			t.Error("it closed while the workspace is used")
		}
		end()
		end()
		if !g.Close(time.Hour) {
			t.Error("it stays open")
		}
		g.Open()
	})
}
