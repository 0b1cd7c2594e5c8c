package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// A sealed object is a JSON object whose last field is the keyed hash of all
// bytes before it: lines and anchors are.
const (
	sealOpen  = `,"sum":"`
	sealClose = `"}`
	sumLen    = 2 * sha256.Size
	sealLen   = len(sealOpen) + sumLen + len(sealClose)
)

// sum is a keyed hash in hex.
type sum [sumLen]byte

// noSum is the "prev" of the first line.
var noSum = sum(bytes.Repeat([]byte{'0'}, sumLen))

// sealer makes and checks sums. It is not safe for concurrent use.
type sealer struct {
	mac hash.Hash
	raw [sha256.Size]byte
}

func newSealer(key []byte) *sealer { return &sealer{mac: hmac.New(sha256.New, key)} }

func (s *sealer) sum(body []byte) sum {
	s.mac.Reset()
	s.mac.Write(body)
	var out sum
	hex.Encode(out[:], s.mac.Sum(s.raw[:0]))
	return out
}

// seal finishes an object that lacks only its sum and the closing brace.
func (s *sealer) seal(body []byte) ([]byte, sum) {
	made := s.sum(body)
	body = append(body, sealOpen...)
	body = append(body, made[:]...)
	return append(body, sealClose...), made
}

// unseal splits a sealed object; ok is false if it does not have that form.
// Whether the sum is right is for the caller to ask.
func unseal(object []byte) (body []byte, claimed sum, ok bool) {
	n := len(object) - sealLen
	if n < 1 || object[0] != '{' {
		return nil, sum{}, false
	}
	body, rest := object[:n], object[n:]
	rest, opens := bytes.CutPrefix(rest, []byte(sealOpen))
	rest, closes := bytes.CutSuffix(rest, []byte(sealClose))
	if !opens || !closes {
		return nil, sum{}, false
	}
	return body, sum(rest), true
}
