package local

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// A snapshot is there once somebody was told so, but on the disk later. Until then
// the keeper has its files, so that the next process writes them.

// snapshotPrefix begins the names that a keeper has of snapshots; those of
// sandboxes are ids, which never have it.
const snapshotPrefix = "snapshot:"

// snapshotNote is what the next process must know of a snapshot.
type snapshotNote struct {
	Size   cove.Bytes  `json:"size"`
	Layers []layerNote `json:"layers"`
	Maker  *makerNote  `json:"maker,omitempty"`
}

// holdSnapshot gives the keeper the files of a snapshot; nil where there is none.
func (p *Provider) holdSnapshot(ctx context.Context, name cove.ID, files *frozen, by crew) (*held, error) {
	k, err := p.reserveHeld(ctx, by.host, snapshotPrefix+name)
	if k == nil {
		return nil, err
	}
	h := keeper.Holding{Files: map[string]int{}}
	n := snapshotNote{Size: files.size, Layers: noteLayers(files.layers, map[*store]int{}, h.Files)}
	var opened []int
	n.Maker, opened = by.maker.note(&h)
	defer closeAll(opened)
	if h.Note, err = json.Marshal(n); err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the snapshot cannot be written down")
	}
	if err := k.client.Put(ctx, k.id, h); err != nil {
		return nil, keeperFault(err)
	}
	by.maker.keep()
	return k, nil
}

// release lets the keeper let go of a snapshot that is on the disk, or removed. The
// caller holds mu.
func (s *snapshot) release() {
	if s.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keeperPatience)
	defer cancel()
	_ = s.held.drop(ctx) // who finds it again finds it on the disk, too
	s.by.maker.letGo()
	s.held = nil
}

// heldSnapshot is one of an earlier process, which may not be on the disk.
type heldSnapshot struct {
	name  cove.ID
	files *frozen
	by    crew
	held  *held
}

// findSnapshot takes down what the keeper holds of a snapshot. It is false if that
// is of no use.
func (h *hostSide) findSnapshot(c *keeper.Client, name string, got *keeper.Holding) bool {
	id := cove.ID(strings.TrimPrefix(name, snapshotPrefix))
	var n snapshotNote
	if json.Unmarshal(got.Note, &n) != nil || !id.Valid() || len(n.Layers) == 0 {
		return false
	}
	layers, ok := readLayers(n.Layers, map[int]*store{}, got.Files)
	if !ok {
		return false
	}
	by := crew{h, h.remake(n.Maker, got.Files)}
	by.maker.keep()
	h.unsaved = append(h.unsaved, heldSnapshot{id, &frozen{layers, n.Size, by, &seen{}}, by, &held{client: c, id: name}})
	return true
}

// finish has the snapshots written that an earlier process did not finish.
func (k *snapshots) finish(under string, list []heldSnapshot) {
	if len(list) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	dir, err := k.open(under)
	for _, u := range list {
		if err != nil { // the keeper has it still
			u.files.drop()
			continue
		}
		s := &snapshot{held: u.held, by: u.by}
		if _, err := dir.Lstat(string(u.name) + treeSuffix); err == nil {
			u.files.drop()
			s.release()
			continue
		}
		if k.kept == nil {
			k.kept = map[cove.ID]*snapshot{}
		}
		k.kept[u.name] = s
		k.keep(context.Background(), u.name, s, u.files, u.by)
	}
}
