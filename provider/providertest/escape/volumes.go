package escape

import (
	"context"
	"path"
	"strings"
)

// volumeAttacks are on what a sandbox is shown of the host.
func volumeAttacks() []Attack {
	attacks := []Attack{
		native("volume_writes", "change a read-only volume, by every call that changes files"),
		native("volume_remount", "make a read-only volume one that can be written to"),
		native("volume_links", "link and move files out of a read-only volume, and write there"),
		native("volume_symlinks", "leave volumes by links, by .. and from one to another"),
		native("volume_programs", "run setuid programs and open devices in volumes"),
		{Name: "volume_names", Try: "leave volumes by links and .. in calls on files", Via: byFiles, run: volumeNames},
	}
	for i := range attacks {
		attacks[i].room = withVolumes
		if attacks[i].Name == "volume_names" {
			continue
		}
		name := attacks[i].Name
		attacks[i].run = func(ctx context.Context, r *round) verdict {
			v, _ := r.attack(ctx, name)
			return v.also(r.untouched()).also(r.unharmed())
		}
	}
	return attacks
}

// volumeNames tries links in volumes through the calls on files.
func volumeNames(ctx context.Context, r *round) verdict {
	f := r.box.Files()
	below := strings.TrimPrefix(r.secret(), "/")
	v := heldBy("names in volumes are resolved inside the sandbox, and the volume is read-only there too")
	for _, dir := range []string{readTarget, writeTarget} {
		for _, name := range []string{"away", "above", "root/" + below, up + below, "dir/../../../../" + below} {
			if text := read(ctx, f, dir+"/"+name); strings.Contains(text, r.token) {
				return breach("read a file of the host as " + dir + "/" + name)
			}
			_ = f.Write(ctx, dir+"/"+name, strings.NewReader("overwritten"), 0o644)
		}
	}
	for _, name := range []string{readTarget + "/f", readTarget + "/dir/new", writeTarget + "/across"} {
		_ = f.Write(ctx, name, strings.NewReader("overwritten"), 0o644)
		_ = f.Move(ctx, name, writeTarget+"/moved")
		_ = f.Remove(ctx, path.Clean(name))
	}
	return v.also(r.untouched()).also(r.unharmed())
}
