package escape

import (
	"context"
	"os"
	"strings"
	"syscall"
)

func leakAttacks() []Attack {
	return []Attack{
		native("environment_leak", "find the daemon's environment in one's own and in /proc"),
		{Name: "descriptor_leak", Try: "find descriptors that the daemon left open", Via: inherits, run: leakedDescriptors},
	}
}

// openLeak opens a file the way that careless code does: whoever is started
// inherits it.
func openLeak(name string) (*os.File, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// listDescriptors lists the descriptors of a shell, which opens none itself but
// the directory it reads, and that is closed by the time it looks.
const listDescriptors = `[ -d /proc/$$/fd ] || { echo none; exit; }
for f in /proc/$$/fd/*; do
	case ${f##*/} in 0|1|2) continue;; esac
	[ -L "$f" ] && echo "leaked ${f##*/}: $(readlink "$f")"
done
echo looked`

func leakedDescriptors(ctx context.Context, r *round) verdict {
	got, err := r.shell(ctx, listDescriptors)
	switch {
	case err != nil:
		return failed(err)
	case strings.Contains(got.text, "leaked "):
		return breach(clip(strings.Join(strings.Fields(got.text), " ")))
	case strings.Contains(got.text, "none"):
		return heldBy("no /proc to look in")
	case !strings.Contains(got.text, "looked"):
		return untold(clip(got.text))
	}
	return heldBy("a program has its three streams and no other descriptor")
}
