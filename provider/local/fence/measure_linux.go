package fence

import (
	"path"

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

// directory counts what is in one directory, and returns the directories in it of
// which a layer that is counted has a part.
func (m *measurer) directory(s spot) (dirs []spot, err error) {
	if len(s.path) > longest {
		return nil, tooLong("measure", s.path)
	}
	open := make([]int, 0, len(s.layers))
	defer func() { closeAll(open) }()
	hidden := map[string]bool{} // names that the layers so far say all of
	parts := map[string]int{}   // where the other names are in dirs
	for i, layer := range s.layers {
		fd, all, err := list(m.layers[layer], s.path)
		if err != nil {
			return nil, err
		}
		if fd < 0 {
			continue
		}
		open = append(open, fd)
		for _, n := range all {
			if hidden[n] {
				continue
			}
			st, ok, err := look(fd, n)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			at, again := parts[n]
			if !isDir(&st) {
				hidden[n] = true
				if !again && !isWhiteout(&st) && layer >= m.over {
					m.count(&st)
				}
				continue
			}
			if !again {
				at = len(dirs)
				parts[n] = at
				dirs = append(dirs, spot{path: path.Join(s.path, n)})
				if layer >= m.over {
					m.count(&st)
				}
			}
			dirs[at].layers = append(dirs[at].layers, layer)
			if i < len(s.layers)-1 {
				opaque, err := m.t.isOpaque(fd, n)
				hidden[n] = err == nil && opaque // one that goes this very moment hides nothing yet
			}
		}
	}
	counted := dirs[:0]
	for _, d := range dirs {
		if d.layers[len(d.layers)-1] >= m.over {
			counted = append(counted, d)
		}
	}
	return counted, nil
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
