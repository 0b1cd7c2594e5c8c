package gvisor

import "github.com/cove-sandbox/cove"

// Images are those that spares are restored from.
type Images = images

// NewImages returns none.
func NewImages() *Images { return newImages() }

// Want says that a mold should have an interpreter with a module, and reports whether
// its image is to be made.
func (s *images) Want(m cove.Mold, module string) bool {
	s.want(m, interpreter{program: "python3", modules: []string{module}})
	_, _, mine := s.find(m, "")
	return mine != nil
}

// Has reports whether a mold should have an interpreter.
func (s *images) Has(m cove.Mold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[m] != nil
}

// DrawnTree returns the links and the places that are shown in the root of a
// template that is a tree.
func DrawnTree(tree string) (links map[string]string, binds []string, err error) {
	d, err := drawTree(tree)
	if err != nil {
		return nil, nil, err
	}
	links = map[string]string{}
	for _, l := range d.Links {
		links[l.Path] = l.To
	}
	for _, b := range d.Binds {
		binds = append(binds, b.Path)
	}
	return links, binds, nil
}
