package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/keeper"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// maker is a spawner, which alone has rights over the sandboxes that it made,
// unless we are root. So it lives for as long as they do: the keeper has a link to
// it with each of them.
type maker struct {
	*fence.Spawner

	id    cove.ID
	print string       // of the plan
	kept  atomic.Int64 // by how much that outlives us
}

// makerNote is what the next process must know of it.
type makerNote struct {
	ID    cove.ID `json:"id"`
	Print string  `json:"print"`
}

// The names of its descriptors.
const (
	makerFile        = "spawner"
	makerProcessFile = "spawner-process"
)

// fingerprint tells plans apart, and the executables that carry them out. The
// caller holds mu.
func (k *kit) fingerprint() string {
	h := k.host
	text, err := json.Marshal(k.plan)
	var st unix.Stat_t
	if err != nil || unix.Fstat(int(h.executable.Fd()), &st) != nil {
		return ""
	}
	file, _ := json.Marshal([]any{st.Dev, st.Ino, st.Size, st.Ctim}) // numbers
	sum := sha256.Sum256(append(text, file...))
	return hex.EncodeToString(sum[:])
}

// launch starts a spawner for the plan, or takes one that an earlier process
// left. The caller holds mu.
func (k *kit) launch() (*maker, error) {
	h, print := k.host, k.fingerprint()
	for _, m := range h.makers {
		if m.print == print && print != "" && !m.over() {
			return m, nil
		}
	}
	s, err := fence.Launch(k.plan, int(h.executable.Fd()), int(h.proc.Fd()))
	if err != nil {
		return nil, err
	}
	return &maker{Spawner: s, id: cove.NewID(), print: print}, nil
}

func (m *maker) over() bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// remake finds the spawner of what an earlier process made. It takes its
// descriptors out of the files. Nil means that it is gone, or that none is needed.
func (h *hostSide) remake(n *makerNote, files map[string]int) *maker {
	socket, one := files[makerFile]
	process, two := files[makerProcessFile]
	if n == nil || !one || !two || h.become {
		return nil
	}
	if m := h.makers[n.ID]; m != nil {
		return m
	}
	delete(files, makerFile)
	delete(files, makerProcessFile)
	s, err := fence.Rejoin(socket, process)
	if err != nil {
		return nil
	}
	m := &maker{Spawner: s, id: n.ID, print: n.Print}
	h.remember(m)
	return m
}

// remember keeps a spawner for what it made. The caller holds mu, or is alone.
func (h *hostSide) remember(m *maker) {
	if h.makers == nil {
		h.makers = map[cove.ID]*maker{}
	}
	h.makers[m.id] = m
}

// note adds the spawner to what a keeper is given; the caller closes what is
// returned.
func (m *maker) note(h *keeper.Holding) (*makerNote, []int) {
	if m == nil {
		return nil, nil
	}
	socket, process, err := m.Link()
	if err != nil {
		return nil, nil // it has ended, and who needs it will say so
	}
	h.Files[makerFile], h.Files[makerProcessFile] = socket, process
	return &makerNote{ID: m.id, Print: m.print}, []int{socket, process}
}

// keep counts what the keeper has of it, and letGo what it has no longer.
func (m *maker) keep() {
	if m != nil {
		m.kept.Add(1)
	}
}

func (m *maker) letGo() {
	if m != nil {
		m.kept.Add(-1)
	}
}

// end ends a spawner that nobody needs.
func (m *maker) end() error {
	if m.kept.Load() > 0 {
		m.Leave()
		return nil
	}
	return m.Close()
}

// crew does jobs with the rights over a sandbox: we, or who made it.
type crew struct {
	host  *hostSide
	maker *maker // nil for us
}

// do has a job done.
func (c crew) do(ctx context.Context, j fence.Job, files ...int) (fence.Done, error) {
	if c.maker == nil {
		return c.host.do(ctx, j, files...)
	}
	return c.maker.Do(ctx, j, files)
}

// openWays is [fence.OpenWays] by who may.
func (c crew) openWays(ctx context.Context, process int, w fence.Ways) ([]int, error) {
	switch {
	case c.host.become:
		return fence.OpenWays(process, w)
	case c.maker == nil:
		return nil, fence.ErrEnded
	}
	return c.maker.OpenWays(ctx, process, w)
}
