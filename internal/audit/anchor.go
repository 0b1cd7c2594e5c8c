package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mark is a line's number and sum, and where it stands: in which segment, from
// which byte, to which byte. The two are the same where the line ended the
// segment before and this one has none yet.
type mark struct {
	seq     int64
	sum     sum
	segment int
	at, end int64
}

// anchorLen is one disk sector: a write of it is done whole or not at all, also
// when the power goes.
const anchorLen = 512

var errAnchor = errors.New("the anchor is damaged")

// encodeAnchor is called after every sync and is therefore written by hand.
// m is the last line that was synced and tip the last that was written, which
// counts for as long as the machine of boot runs.
func encodeAnchor(buf []byte, s *sealer, keyID string, m, tip mark, boot string) []byte {
	buf = append(buf[:0], `{"version":1,"key":"`...)
	buf = append(buf, keyID...)
	buf = appendInt(buf, `","seq":`, m.seq)
	buf = appendInt(buf, `,"segment":`, int64(m.segment))
	buf = appendInt(buf, `,"at":`, m.at)
	buf = appendInt(buf, `,"end":`, m.end)
	buf = append(buf, `,"head":"`...)
	buf = append(buf, m.sum[:]...)
	buf = appendInt(buf, `","last":`, tip.seq)
	buf = append(buf, `,"tip":"`...)
	buf = append(buf, tip.sum[:]...)
	buf = append(buf, `","boot":"`...)
	buf = append(buf, boot...)
	buf = append(buf, '"')
	buf, _ = s.seal(buf)
	for len(buf) < anchorLen-1 {
		buf = append(buf, ' ')
	}
	return append(buf, '\n')
}

func appendInt(buf []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(buf, name...), n, 10)
}

// anchorRecord is an anchor as it was read.
type anchorRecord struct {
	mark

	last    int64  // the last line that was written, synced or not
	tip     sum    // its sum
	boot    string // the start of the machine for which those two count
	keyID   string
	genuine bool // made with our key and unchanged
}

func decodeAnchor(data []byte, s *sealer) (anchorRecord, error) {
	// Every byte counts: padding that is not as it was written is damage too.
	if len(data) != anchorLen || data[anchorLen-1] != '\n' {
		return anchorRecord{}, errAnchor
	}
	object := bytes.TrimRight(data[:anchorLen-1], " ")
	body, claimed, ok := unseal(object)
	var fields struct {
		Version int    `json:"version"`
		Key     string `json:"key"`
		Seq     int64  `json:"seq"`
		Segment int    `json:"segment"`
		At      int64  `json:"at"`
		End     int64  `json:"end"`
		Head    string `json:"head"`
		Last    int64  `json:"last"`
		Tip     string `json:"tip"`
		Boot    string `json:"boot"`
	}
	if !ok || json.Unmarshal(object, &fields) != nil || fields.Version != 1 || len(fields.Head) != sumLen || len(fields.Tip) != sumLen {
		return anchorRecord{}, errAnchor
	}
	r := anchorRecord{keyID: fields.Key, genuine: s.sum(body) == claimed, last: fields.Last, boot: fields.Boot}
	r.mark = mark{seq: fields.Seq, segment: fields.Segment, at: fields.At, end: fields.End}
	copy(r.sum[:], fields.Head)
	copy(r.tip[:], fields.Tip)
	return r, nil
}

// known returns the number and the sum of the newest line that must be there. A
// machine that was started anew may have lost lines that were never synced,
// although the anchor that tells of them came to the disk.
func (r anchorRecord) known(boot string) (int64, sum) {
	if r.boot == boot && boot != "" && r.last > r.seq {
		return r.last, r.tip
	}
	return r.seq, r.sum
}

// maxBootID is the length of the kernel's form of a UUID.
const maxBootID = 36

// bootID names this start of the machine, or is "" where nobody knows.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(data)); err == nil && len(id) <= maxBootID && strings.Trim(id, "0123456789abcdef-") == "" {
		return id
	}
	return ""
}

func readAnchor(path string, s *sealer) (anchorRecord, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the operator's own path
	if err != nil {
		return anchorRecord{}, fmt.Errorf("anchor: %w", err)
	}
	return decodeAnchor(data, s)
}
