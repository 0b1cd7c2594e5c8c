package msbapi

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// Project is that of all sessions of this server.
const Project = "msb"

// userPrefix is before a namespace in the user of a session.
const userPrefix = "msb:"

// maxSpaces bounds the namespaces that are remembered.
const maxSpaces = 10_000

// space is a namespace of a tenant.
type space struct{ tenant, name string }

// spaces remembers in which namespaces something was started, as the original does
// by its directories. It is safe for concurrent use.
type spaces struct {
	mu  sync.Mutex
	all map[space]struct{} // guarded by mu
}

// add remembers one; where there are too many, any other is forgotten.
func (s *spaces) add(one space) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.all[one]; !there && len(s.all) >= maxSpaces {
		for other := range s.all {
			delete(s.all, other)
			break
		}
	}
	s.all[one] = struct{}{}
}

func (s *spaces) has(one space) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.all[one]
	return ok
}

// look finds a sandbox among the sessions, or returns nil.
func (c *call) look(p params) (*cove.Session, error) {
	f := cove.SessionFilter{Project: Project, User: userPrefix + p.Namespace, Thread: p.Sandbox, Limit: 1}
	for s, err := range c.platform.Sessions().List(c.ctx, f) {
		return s, err
	}
	return nil, nil //nolint:nilnil // none is an answer
}

// find finds a sandbox that must be there.
func (c *call) find(p params) (*cove.Session, error) {
	s, err := c.look(p)
	if err == nil && s == nil {
		err = missing(p)
	}
	return s, err
}

// missing is the answer to a sandbox that is not there.
func missing(p params) error {
	return broken(cove.Errorf(cove.NotFound, "there is no sandbox %s in the namespace %s", p.Sandbox, p.Namespace).Remedy("start it with sandbox.start"))
}

// unknown tells a namespace that was never used from a sandbox that is not there.
func (c *call) unknown(p params) error {
	if c.spaces.has(space{c.who.Tenant, p.Namespace}) {
		return missing(p)
	}
	for _, err := range c.platform.Sessions().List(c.ctx, cove.SessionFilter{Project: Project, User: userPrefix + p.Namespace, Limit: 1}) {
		if err != nil {
			return err
		}
		return missing(p)
	}
	return wrong("Namespace directory '" + p.Namespace + "' does not exist")
}
