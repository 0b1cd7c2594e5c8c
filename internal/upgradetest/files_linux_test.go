package upgradetest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/cove-sandbox/cove"
)

// large is the size of the large file in a workspace.
const large = 20 << 20

// furnish puts files of all kinds into a session, and returns what they look like.
func furnish(t *testing.T, c *cluster, at *node, id cove.ID) string {
	t.Helper()
	c.sh(at, id, `umask 022; mkdir -p empty deep/er/est 'with space'; chmod 700 empty; chmod 1777 deep/er
echo run >program; chmod 755 program; echo read >only; chmod 444 only; echo own >own; chmod 600 own; : >nothing
ln -s only link; ln -s nowhere/at/all dangling; ln -s /etc/hostname outside; ln -s ../.. deep/up
echo x >'with space/a
b'; echo é >"deep/er/est/ü"; touch -d 2001-02-03T04:05:06Z own`)
	data := make([]byte, large)
	source := rand.NewChaCha8([32]byte([]byte(id + "------------------------------------")[:32]))
	_, _ = source.Read(data) // it never fails
	if err := at.client.Files(id).Write(t.Context(), "large", bytes.NewReader(data), 0o640); err != nil {
		t.Fatal(err)
	}
	look := lookOf(c, at, id)
	if sum := sha256.Sum256(data); !bytes.Contains([]byte(look), []byte(hex.EncodeToString(sum[:]))) {
		t.Fatalf("the large file is not as it was sent:\n%s", look)
	}
	return look
}

// lookOf is all that there is in a workspace: names, kinds, modes, sizes, where links
// lead, when files were written, and what is in them.
func lookOf(c *cluster, at *node, id cove.ID) string {
	c.t.Helper()
	return c.sh(at, id, `cd /workspace && find . -mindepth 1 \( -type d -printf 'd %m %p\n' -o -type l -printf 'l %p -> %l\n' -o -printf '%y %m %s %Ts %p\n' \) | LC_ALL=C sort
find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum`)
}
