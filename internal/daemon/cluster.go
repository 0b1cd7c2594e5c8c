//go:build !lean

package daemon

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/auth"
	"github.com/cove-sandbox/cove/internal/cluster"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/noderecord"
	"github.com/cove-sandbox/cove/store/redis"
)

// clustered reports whether this server is one node of many.
func (s *server) clustered() bool { return s.cfg.Redis.URL != "" }

// listenNodes opens the door for other nodes.
func (s *server) listenNodes(ctx context.Context) (err error) {
	if !s.clustered() {
		return nil
	}
	if s.OnDemand {
		return cove.InvalidField("REDIS_URL", "makes this machine a node of many, which no command starts by itself; run cove serve, or unset it")
	}
	if s.nodeDoor, err = listenTCP(ctx, "COVE_NODE_ADDR", s.cfg.Redis.NodeAddr); err != nil {
		return err
	}
	if at, perr := netip.ParseAddrPort(s.nodeDoor.Addr().String()); perr == nil && at.Addr().IsUnspecified() {
		return cove.InvalidField("COVE_NODE_ADDR", "%s is every address of this machine, and no other node can tell which; set the one that they reach", s.cfg.Redis.NodeAddr)
	}
	return nil
}

// openStore opens where records are kept: in COVE_HOME, whose lock makes us its only
// writer, or where all nodes keep them.
func (s *server) openStore(ctx context.Context) (cove.Store, error) {
	if s.clustered() {
		if err := s.join(ctx); err != nil {
			return nil, err
		}
		return s.watch.Store(s.remembered), nil
	}
	copies, err := s.home.openRecords(ctx, s.Logger)
	if err != nil {
		return nil, err
	}
	s.copies, s.remembered = copies, auth.Remembering(copies)
	return s.watch.Store(s.remembered), nil
}

// join opens the directory and takes this node's lease.
func (s *server) join(ctx context.Context) error {
	r := s.cfg.Redis
	same, err := cluster.Derive(r.Secret.Reveal(), "check")
	if err != nil {
		return err
	}
	instance, before, err := s.home.instance()
	if err != nil {
		return err
	}
	dir, err := redis.Open(ctx, redis.Config{URL: r.URL, Node: s.cfg.NodeID, Instance: instance, Same: hex.EncodeToString(same), Lease: r.Lease, Logger: s.Logger})
	if err != nil {
		return err
	}
	s.records, err = noderecord.Open(noderecord.Config{
		Directory: dir, Node: s.cfg.NodeID, Dir: s.home.nodeRecords(), Before: before, Remembered: engine.KeepEnded, Logger: s.Logger,
	})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	s.directory, s.remembered = s.records, auth.Remembering(s.records) // before the directory tells of changes
	s.member, err = cluster.Join(ctx, cluster.Config{
		Directory: s.records, Node: s.cfg.NodeID, Region: r.Region, Address: s.nodeDoor.Addr().String(), Version: s.Version, Secret: r.Secret.Reveal(),
		Regions: regionsOf(s.cfg), Lease: r.Lease, Grace: r.Grace, Changed: s.changed, Announce: s.records.Announce, Renewed: s.renewed, Logger: s.Logger,
	})
	if err != nil {
		return errors.Join(err, s.records.Close())
	}
	return nil
}

// asNode makes an engine that of a node.
func (s *server) asNode(ctx context.Context, a *assembly, ec *engine.Config) error {
	if !s.clustered() {
		return nil
	}
	a.later(func() error {
		s.member.Leave(ctx)
		return nil
	})
	key, err := cluster.Derive(s.cfg.Redis.Secret.Reveal(), "requests")
	if err != nil {
		return err
	}
	ec.Keeps = s.records.Keeps
	ec.Directory, ec.Cluster, ec.Same = s.directory, s.member, func(request []byte) string {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(request) // never fails
		return hex.EncodeToString(mac.Sum(nil))
	}
	return nil
}

// instance is what tells this COVE_HOME from another one: whose node has the same
// name, or whose archives are in the same bucket; and whether it was there before.
func (h Home) instance() (id string, before bool, err error) {
	path := filepath.Join(h.dir, "node.id")
	data, err := os.ReadFile(path) //nolint:gosec // in COVE_HOME
	if err == nil && cove.ID(strings.TrimSpace(string(data))).Valid() {
		return strings.TrimSpace(string(data)), true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, homeError(h.dir, err)
	}
	id = string(cove.NewID())
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", false, homeError(h.dir, err)
	}
	return id, false, nil
}

// changed is told of a key or a tenant that some node changed.
func (s *server) changed(n cove.Notice) {
	ctx, cancel := context.WithTimeout(context.Background(), changedTime)
	defer cancel()
	missed := n == (cove.Notice{})
	if n.Key != "" {
		s.remembered.ForgetKey(n.Key)
	}
	if n.Revoked {
		s.watch.Revoke(n.Key)
		s.keepRevoked(ctx, n.Key)
	}
	if missed {
		s.revokeMissed(ctx)
	}
	if e := s.serving.Load(); e != nil {
		if n.Revoked {
			e.KeyRevoked(ctx, n.Key)
		}
		if missed || n.Tenant != "" {
			e.TenantChanged(ctx, n.Tenant)
		}
	}
}

const changedTime = 10 * time.Second

// revokeMissed ends what callers have under way whose keys were revoked while nobody
// heard of it. Keys that cannot be looked up are believed for as long as this node's
// lease lasts.
func (s *server) revokeMissed(ctx context.Context) {
	s.remembered.Recheck(ctx)
	for _, id := range s.watch.Keys() {
		k, err := s.remembered.KeyByID(ctx, id)
		if err == nil && !k.RevokedAt.IsZero() {
			s.watch.Revoke(id)
			if e := s.serving.Load(); e != nil {
				e.KeyRevoked(ctx, id)
			}
		}
	}
}

// mostRevoked is how many keys that were revoked are kept, in case that the directory
// loses them.
const mostRevoked = 4096

// keepRevoked remembers that a key was revoked, so that nobody who missed it can put
// it back.
func (s *server) keepRevoked(ctx context.Context, id cove.ID) {
	k, err := s.directory.KeyByID(ctx, id)
	if err != nil {
		return // the directory lost it already, and who put it there has it
	}
	s.revokedMu.Lock()
	defer s.revokedMu.Unlock()
	if s.revoked = append(s.revoked, k); len(s.revoked) > mostRevoked {
		s.revoked = slices.Delete(s.revoked, 0, len(s.revoked)-mostRevoked)
	}
}

// renewed puts the keys and the bounds of tenants back that a directory which was begun
// anew has lost, and this node remembers: keys that were revoked first, so that they
// stay it.
func (s *server) renewed(ctx context.Context) error {
	s.revokedMu.Lock()
	keys := slices.Clone(s.revoked)
	s.revokedMu.Unlock()
	for _, k := range append(keys, s.remembered.Recheck(ctx)...) {
		if err := s.directory.PutKey(ctx, k); err != nil && cove.CodeOf(err) != cove.Conflict {
			return err
		}
	}
	if err := s.records.Renew(ctx); err != nil {
		return err
	}
	if e := s.serving.Load(); e != nil {
		e.TenantChanged(ctx, "")
	}
	_, err := auth.Bootstrap(ctx, s.directory, s.home.AdminKey())
	return err
}

// keyring knows the keys. In a cluster each node has a part of their bounds.
func (s *server) keyring() *auth.Keyring {
	if s.member == nil {
		return auth.New(s.parts.store)
	}
	return auth.NewAmong(s.parts.store, s.member.Answering)
}

// platform is what callers get: the cluster's, or this server's own.
func (s *server) platform(p cove.Principal) cove.Platform {
	if s.member != nil {
		return s.member.As(p)
	}
	return s.parts.engine.As(p)
}

// nodesOnly puts TLS in front of the door for other nodes, and the bound on all
// connections: not that of one remote, which is what a node is.
func (s *server) nodesOnly() net.Listener {
	if s.nodeDoor == nil {
		return nil
	}
	bounded := httpapi.Limit(s.nodeDoor, httpapi.Bounds{All: s.cfg.Server.Conns, Refused: s.refused()})
	return &nodeListener{tls.NewListener(bounded, s.member.Door())}
}

// nodeListener is the door by which only other nodes come in.
type nodeListener struct{ net.Listener }

// forNodes answers nodes of this cluster, which want this very node, and those of
// other clusters, which want any. Requests of clients of MCP and of E2B that another
// node handed on are answered to who sent them, by the key that they show.
func (s *server) forNodes(common httpapi.Config, f faces) http.Handler {
	mcp, e2b := s.mcp.Here(), f.e2b.Here()
	common.Platform = s.member.Here
	here := httpapi.New(common)
	common.Platform = s.member.Home
	home := httpapi.New(common)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == mcpPath:
			mcp.ServeHTTP(w, r)
		case f.e2b.Owns(r):
			e2b.ServeHTTP(w, r)
		case cluster.WantsAny(r):
			home.ServeHTTP(w, r)
		default:
			here.ServeHTTP(w, r)
		}
	})
}

// regionsOf are the other clusters that the settings name.
func regionsOf(cfg config.Config) []cluster.Region {
	var list []cluster.Region
	for _, name := range cfg.Regions.Names() {
		r := cfg.Regions[name]
		list = append(list, cluster.Region{Name: name, Nodes: r.Nodes, Tenants: r.Tenants, Metadata: r.Metadata})
	}
	return list
}
