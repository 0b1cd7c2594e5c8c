//go:build linux

package mailbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// question is what the executable was asked.
type question struct {
	verb string
	link string
	user int // of open: the agent's, where the box is not there yet
	at   int64
	wait time.Duration
	data []byte
}

var errQuestion = errors.New("this is no question")

// parseQuestion reads the words after DIR.
func parseQuestion(args []string) (q question, err error) {
	if len(args) < 2 || !validLink(args[1]) {
		return q, errQuestion
	}
	q.verb, q.link = args[0], args[1]
	switch {
	case q.verb == "close" && len(args) == 2:
		return q, nil
	case q.verb == "open" && len(args) == 3:
		q.user, err = parseUser(args[2])
		return q, err
	case q.verb == "give" && len(args) >= 3:
		if q.at, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return q, errQuestion
		}
		q.data, err = unpieces(args[3:])
		return q, err
	case q.verb == "take" && len(args) == 4:
		ms, err1 := strconv.ParseUint(args[3], 10, 31)
		at, err2 := strconv.ParseInt(args[2], 10, 64)
		if errors.Join(err1, err2) != nil {
			return q, errQuestion
		}
		q.at, q.wait = at, time.Duration(ms)*time.Millisecond
		return q, nil
	}
	return q, errQuestion
}

func parseUser(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return 0, errQuestion // never root
	}
	return int(n), nil
}

func validLink(id string) bool {
	if id == "" || len(id) > maxLink {
		return false
	}
	return strings.Trim(id, "0123456789abcdef") == ""
}

// write sends a question to the box: a line and the bytes.
func (q question) write(w io.Writer) error {
	_, err := io.WriteString(w, fmt.Sprintf("%s %s %d %d %d\n", q.verb, q.link, q.at, q.wait, len(q.data))+string(q.data))
	return err
}

func readQuestion(r io.Reader) (q question, err error) {
	in := bufio.NewReader(io.LimitReader(r, MaxGive+1024))
	line, err := in.ReadString('\n')
	if err != nil {
		return q, err
	}
	var n int
	if _, err := fmt.Sscanf(line, "%s %s %d %d %d", &q.verb, &q.link, &q.at, &q.wait, &n); err != nil || n < 0 || n > MaxGive || !validLink(q.link) {
		return q, errQuestion
	}
	q.data = make([]byte, n)
	_, err = io.ReadFull(in, q.data)
	return q, err
}
