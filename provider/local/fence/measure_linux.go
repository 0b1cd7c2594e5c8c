package fence

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// measurer counts the files of layers that other layers lie over.
type measurer struct {
	t      Tools
	layers []int // the topmost first
	over   int   // how many of them are not counted
	known  map[inode]bool
	done   Done
}

// spot is a directory of the merged tree, and the layers that have a part of it.
type spot struct {
	path   string
	layers []int // indexes, the topmost first
}

// measure counts the files of the lower layers but for the first Slack of them, as far
// as no layer above hides them. What is counted can only become less while programs
// change the layers that are not counted: a name that is hidden once stays hidden.
func (t Tools) measure(j *Job, stores []int) (Done, error) {
	m := &measurer{t: t, over: int(j.Slack), known: map[inode]bool{}}
	defer func() { closeAll(m.layers) }()
	top := spot{path: "."}
	for i, l := range j.Stack.Lower {
		fd, err := openDir(stores[i], l.Name)
		if err != nil {
			return Done{}, err
		}
		m.layers, top.layers = append(m.layers, fd), append(top.layers, i)
	}
	for left := []spot{top}; len(left) > 0; {
		s := left[len(left)-1]
		more, err := m.directory(s)
		if err != nil {
			return Done{}, err
		}
		left = append(left[:len(left)-1], more...)
	}
	return m.done, nil
}

// merged is one directory of the merged tree, as far as its layers were read.
type merged struct {
	hidden map[string]bool // names that say all themselves
	parts  map[string]int  // where the other names are in dirs
	dirs   []spot
}

// directory counts what is in one directory, and returns the directories in it of
// which a layer that is counted has a part.
func (m *measurer) directory(s spot) ([]spot, error) {
	if len(s.path) > longest {
		return nil, tooLong("measure", s.path)
	}
	d := &merged{hidden: map[string]bool{}, parts: map[string]int{}}
	for i, layer := range s.layers {
		fd, all, err := list(m.layers[layer], s.path)
		if err != nil {
			return nil, err
		}
		for _, n := range all {
			if err = m.name(d, s.path, n, fd, layer, i == len(s.layers)-1); err != nil {
				break
			}
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(d.dirs, func(s spot) bool { return s.layers[len(s.layers)-1] < m.over }), nil
}

// name counts a name of a layer in a directory, unless a layer above it has it.
func (m *measurer) name(d *merged, dir, n string, fd, layer int, last bool) error {
	if d.hidden[n] {
		return nil
	}
	st, ok, err := look(fd, n)
	if err != nil || !ok {
		return err
	}
	at, again := d.parts[n]
	if !again && !isWhiteout(&st) && layer >= m.over {
		m.count(&st)
	}
	if !isDir(&st) {
		d.hidden[n] = true
		return nil
	}
	if !again {
		at = len(d.dirs)
		d.parts[n] = at
		d.dirs = append(d.dirs, spot{path: path.Join(dir, n)})
	}
	d.dirs[at].layers = append(d.dirs[at].layers, layer)
	if !last {
		opaque, err := m.t.isOpaque(fd, n)
		d.hidden[n] = err == nil && opaque // one that goes this very moment hides nothing yet
	}
	return nil
}

// count counts a file. One with several names takes its bytes once, and each name of it
// is a file to the kernel, too.
func (m *measurer) count(st *unix.Stat_t) {
	m.done.Count++
	if st.Nlink > 1 && !isDir(st) {
		id := inode{st.Dev, st.Ino} //nolint:unconvert,nolintlint // 32 bits on some machines
		if m.known[id] {
			return
		}
		m.known[id] = true
	}
	m.done.Bytes += st.Blocks * 512
}
