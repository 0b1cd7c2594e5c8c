package artifact

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/cove-sandbox/cove"
)

// accounts says which tenant each file belongs to, and what each tenant has.
type accounts struct {
	tenants map[string]string // by the name of a file; nil until Held is called
	held    map[string]cove.Bytes
}

// add counts a file.
func (a *accounts) add(name, tenant string, size cove.Bytes) {
	a.tenants[name] = tenant
	a.held[tenant] += (size + block - 1) / block * block
}

// Bounds of a look into a file: its tenant stands near its beginning.
const (
	headBytes = 1 << 10
	block     = 4 * cove.KiB
)

// Held implements [cove.Artifacts]. Files are looked into once; what other processes
// write is counted at the next sweep.
func (s *Store) Held(tenant string) cove.Bytes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.tenants == nil {
		s.known = accounts{map[string]string{}, map[string]cove.Bytes{}}
		if root, err := os.OpenRoot(s.dir); err == nil {
			s.count(root)
			_ = root.Close() // nothing was written through it
		}
	}
	return s.known.held[tenant]
}

// recount looks which files there are after a sweep, if Held was called before.
func (s *Store) recount(root *os.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.tenants != nil {
		s.count(root)
	}
}

// count puts all files into the accounts. The caller holds mu.
func (s *Store) count(root *os.Root) {
	files, err := list(root)
	if err != nil {
		return // the next sweep tells
	}
	was := s.known.tenants
	s.known = accounts{map[string]string{}, map[string]cove.Bytes{}}
	for _, f := range files {
		if strings.HasPrefix(f.name, draftPrefix) {
			continue
		}
		tenant, ok := was[f.name]
		if !ok {
			tenant = tenantOf(root, f.name)
		}
		s.known.add(f.name, tenant, f.size)
	}
}

// tenantOf reads the tenant of a file; "" where it names none.
func tenantOf(root *os.Root, name string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	d := json.NewDecoder(io.LimitReader(f, headBytes))
	if _, err := d.Token(); err != nil {
		return ""
	}
	for {
		key, err := d.Token()
		value, verr := d.Token()
		if errors.Join(err, verr) != nil {
			return ""
		}
		if key == "tenant" {
			tenant, _ := value.(string)
			return tenant
		}
	}
}
