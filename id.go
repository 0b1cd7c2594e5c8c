package cove

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// ID names a session, the sandbox that serves it, a snapshot, a key or a run.
// It is 26 lower-case letters and digits, so that it can stand in a host name,
// a file name and a URL as it is; ids sort by the time they were made.
type ID string

// crockford is base32 without i, l, o and u, which people misread.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns a fresh id: 48 bits of milliseconds, 80 bits of chance.
func NewID() ID {
	var raw [16]byte
	_, _ = rand.Read(raw[6:]) // never fails since Go 1.24
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(raw[:6], ms[2:])
	return ID(crockford.EncodeToString(raw[:]))
}

// Valid reports whether id has the form that [NewID] gives. What comes from
// outside is checked with it before it is used as a name of anything.
func (id ID) Valid() bool {
	if len(id) != 26 {
		return false
	}
	_, err := crockford.DecodeString(string(id))
	return err == nil
}
