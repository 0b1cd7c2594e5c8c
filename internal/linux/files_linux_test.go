package linux

import "testing"

// TestProgramsAreBoundInOpenFiles: a sandbox holds a part of the files that a machine
// can have open, however many processes share it.
func TestProgramsAreBoundInOpenFiles(t *testing.T) {
	for _, c := range []struct{ all, processes, most, want uint64 }{
		{2_466_170, 64, 8192, 4816},
		{2_466_170, 256, 8192, 1204},
		{2_466_170, 1024, 8192, 1024},
		{1<<63 - 1, 1024, 8192, 8192},
		{0, 16, 8192, 1024},
		{0, 16, 512, 512},
	} {
		got := share(c.all, c.processes, c.most)
		if got != c.want || c.want > 1024 && got*c.processes > c.all/8 {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := OpenFiles(0, 8192); got != 8192 {
		t.Errorf("without a number of processes: %d", got)
	}
	if got := OpenFiles(4<<20, 8192); got > 8192 || got < 1024 {
		t.Errorf("of this machine: %d", got)
	}
}
