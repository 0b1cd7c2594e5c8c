package bucket

import (
	"context"
	"errors"
	"strings"

	"github.com/cove-sandbox/cove"
)

// mark is the object that names the owner of all that is beside it.
const mark = "owner"

// claim makes a place that is nobody's that of the owner, and refuses another's: what
// our table does not know we would remove, and there it is somebody's.
func (a *Archives) claim(ctx context.Context) error {
	_, err := a.readOwner(ctx)
	if errors.Is(err, errMissing) {
		err = a.objects.put(ctx, mark, textContent(a.owner+"\n"))
	}
	if err != nil {
		return err
	}
	return a.owned(ctx)
}

// owned refuses to go on where the mark is not ours. It is asked before anything is
// listed to be removed: of two who claim a place in the same moment, one has it.
func (a *Archives) owned(ctx context.Context) error {
	found, err := a.readOwner(ctx)
	switch {
	case errors.Is(err, errMissing):
		return cove.Errorf(cove.Conflict, "the object %s that says whose the archives are is gone from %s", mark, a.objects.about()).
			Remedy("see that no other server uses the same place, and start this one again")
	case err != nil:
		return err
	case found != a.owner:
		return cove.Errorf(cove.Conflict, "the archives at %s belong to another server: the object %s there says %.60q, and this one is %q", a.objects.about(), mark, found, a.owner).
			Remedy("give this server a prefix or a folder of its own in COVE_ARCHIVE_URL; only if the other one is gone for good, remove the object %s instead", mark)
	}
	return nil
}

func (a *Archives) readOwner(ctx context.Context) (string, error) {
	text, err := a.readText(ctx, mark)
	return strings.TrimSuffix(text, "\n"), err
}
