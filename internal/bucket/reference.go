package bucket

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// slotLength is how long a stream that is stored again is not stored again.
const slotLength = 30 * time.Minute

// blob is the name of a stream.
type blob struct {
	digest string // SHA-256 in hex
	slot   int64  // half hours since 1970, by the store's clock
}

func nameBlob(digest string, now time.Time) blob {
	return blob{digest, now.Unix() / int64(slotLength/time.Second)}
}

func (b blob) String() string { return b.digest + "." + strconv.FormatInt(b.slot, 10) }

func (b blob) path() string { return blobs + "/" + b.String() }

// began is when the first who named this blob can have done so.
func (b blob) began() time.Time { return time.Unix(b.slot*int64(slotLength/time.Second), 0) }

// parseBlob takes only what String returns.
func parseBlob(name string) (blob, bool) {
	digest, slot, _ := strings.Cut(name, ".")
	n, err := strconv.ParseInt(slot, 10, 64)
	b := blob{digest, n}
	return b, err == nil && n >= 0 && n < 1<<32 && isDigest(digest) && b.String() == name
}

func isDigest(s string) bool {
	return len(s) == hex.EncodedLen(sha256.Size) && strings.Trim(s, "0123456789abcdef") == ""
}

// reference is what is kept of a session.
type reference struct {
	blob blob
	size int64
	of   cove.ID // the session; "" in a reference of an older build
}

func (r reference) String() string {
	if r.of == "" {
		return fmt.Sprintf("cove1 %s %d\n", r.blob, r.size)
	}
	return fmt.Sprintf("cove2 %s %d %s\n", r.blob, r.size, r.of)
}

// parseReference takes only what String returns, so that no damage goes unseen.
func parseReference(text string) (reference, bool) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return reference{}, false
	}
	b, ok := parseBlob(words[1])
	size, err := strconv.ParseInt(words[2], 10, 64)
	r := reference{blob: b, size: size}
	if len(words) > 3 {
		r.of = cove.ID(words[3])
		ok = ok && r.of.Valid()
	}
	return r, ok && err == nil && size >= 0 && r.String() == text
}

// content makes a reference ready to be stored.
func (r reference) content() content { return textContent(r.String()) }

func textContent(text string) content {
	sum := sha256.Sum256([]byte(text))
	return content{strings.NewReader(text), int64(len(text)), hex.EncodeToString(sum[:])}
}
