package local

import "github.com/cove-sandbox/cove"

// face is what others see of a sandbox: always the same, with a layer for each
// power that this host gives it, so that one without a power does not have its
// methods either.
func (s *sandbox) face() cove.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = s.layers()
	}
	return s.seen
}

func (s *sandbox) layers() cove.Sandbox {
	var face cove.Sandbox = s
	if s.soft != nil {
		face = bounded{face, s.soft}
	}
	if s.freezer != nil {
		face = pausing{face, s, s.freezer}
	}
	if s.shelf != nil {
		face = layered{face, s}
	}
	face = s.reach(face)
	if s.made != nil && s.made.held != nil {
		face = resumable{face, s}
	}
	return face
}
