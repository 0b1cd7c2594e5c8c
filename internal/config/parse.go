package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// parse reads the value of a setting from the words of the environment, a flag
// or a scalar of the file. The error says what is wrong and what to do, and
// lacks only the name of the setting. It never shows the text of a secret.
func (s Setting) parse(text string) (reflect.Value, error) {
	text = strings.TrimSpace(text)
	var value any
	var err error
	switch s.typ {
	case reflect.TypeFor[string]():
		value, err = s.parseWord(text)
	case reflect.TypeFor[Secret]():
		value, err = parseSecret(text)
	case reflect.TypeFor[bool]():
		value, err = parseBool(text)
	case reflect.TypeFor[int]():
		value, err = s.parseInt(text)
	case reflect.TypeFor[int64]():
		n, e := s.parseInt(text)
		value, err = int64(n), e
	case reflect.TypeFor[float64]():
		value, err = s.parseFloat(text)
	case reflect.TypeFor[time.Duration]():
		value, err = s.parseDuration(text)
	case reflect.TypeFor[cove.Bytes]():
		value, err = s.parseBytes(text)
	case reflect.TypeFor[[]string]():
		value, err = parseList(text)
	case reflect.TypeFor[[]cove.Volume]():
		value, err = parseVolumes(text)
	default:
		err = fmt.Errorf("cannot be written in one line; write it in the settings file")
	}
	return reflect.ValueOf(value), err
}

func (s Setting) parseWord(text string) (string, error) {
	if strings.ContainsAny(text, "\x00\n\r") {
		return "", errors.New("holds a line break or a NUL byte; write it on one line")
	}
	if len(s.OneOf) > 0 && !slices.Contains(s.OneOf, text) {
		return "", fmt.Errorf("%.80q is unknown; use %s", text, orList(s.OneOf))
	}
	if len(s.schemes) > 0 {
		return text, checkURL(text, s.schemes)
	}
	return text, nil
}

func checkURL(text string, schemes []string) error {
	example := schemes[0] + "://…"
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own words quote the text, which may hold a password.
		return fmt.Errorf("is not a URL; write one such as %s", example)
	}
	if !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("%.200q is not a URL that can be used here; start it with %s", redactedURL(u), orList(suffixed(schemes, "://")))
	}
	if u.Host == "" && u.Path == "" {
		return fmt.Errorf("%.200q names no host; write one after %s://", redactedURL(u), u.Scheme)
	}
	if (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() == "" {
		return fmt.Errorf("%.200q names no host; write one such as %s://localhost:8000", redactedURL(u), u.Scheme)
	}
	return nil
}

func parseSecret(text string) (Secret, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", errors.New("holds a space or a control character; write the key alone")
	}
	return Secret(text), nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%.80q is neither yes nor no; use true or false", text)
}

func (s Setting) parseInt(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a whole number; use %s", text, s.bounds(plain))
	}
	return int(n), s.checkRange(float64(n), text, plain)
}

func (s Setting) parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("%.80q is not a number; use %s", text, s.bounds(plain))
	}
	return f, s.checkRange(f, text, plain)
}

// parseDuration reads a number of seconds, or Go's own form such as 90s or 30m.
func (s Setting) parseDuration(text string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) {
		d, e := time.ParseDuration(text)
		if e != nil {
			return 0, fmt.Errorf("%.80q is not a time; use a number of seconds, %s, or a form such as 90s or 30m", text, s.bounds(plain))
		}
		seconds = d.Seconds()
	}
	if err := s.checkRange(seconds, text, plain); err != nil {
		return 0, err
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// parseBytes reads a number in the unit of the setting, or a size with its own
// unit such as 512m.
func (s Setting) parseBytes(text string) (cove.Bytes, error) {
	unit, err := cove.ParseBytes("1" + s.unit)
	if err != nil {
		return 0, fmt.Errorf("has the unknown unit %q", s.unit)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) {
		return cove.Bytes(n * float64(unit)), s.checkRange(n, text, amount(s.unit))
	}
	b, err := cove.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a size; use %s, or a size such as 512m or 1g", text, s.bounds(amount(s.unit)))
	}
	return b, s.checkRange(float64(b)/float64(unit), text, amount(s.unit))
}

// amount names the unit behind a bound.
type amount string

const plain amount = ""

func (a amount) of(bound string) string {
	switch a {
	case "k":
		return bound + " KB"
	case "m":
		return bound + " MB"
	case "b":
		return bound + " bytes"
	case plain:
	}
	return bound
}

// bounds says what may be written: every number has both bounds.
func (s Setting) bounds(a amount) string {
	if s.max == "" {
		return a.of(s.min) + " or more"
	}
	return s.min + " to " + a.of(s.max)
}

func (s Setting) checkRange(n float64, text string, a amount) error {
	low, _ := strconv.ParseFloat(s.min, 64)
	high, err := strconv.ParseFloat(s.max, 64)
	if err != nil {
		high = math.MaxInt64 / float64(time.Second)
	}
	if !(n >= low && n <= high) {
		return fmt.Errorf("%.80s is out of range; use %s", text, s.bounds(a))
	}
	return nil
}

// parseList reads words with commas between, or a JSON array of words.
func parseList(text string) ([]string, error) {
	var words []string
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &words); err != nil {
			return nil, fmt.Errorf("%.80q is not a JSON array of words; write one such as [\"a\", \"b\"], or a,b", text)
		}
	} else {
		words = strings.Split(text, ",")
	}
	var list []string
	for _, w := range words {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list, nil
}

func parseVolumes(text string) ([]cove.Volume, error) {
	list, err := parseList(text)
	if err != nil {
		return nil, err
	}
	var volumes []cove.Volume
	for _, w := range list {
		v, err := ParseVolume(w)
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// ParseVolume reads host:sandbox, host:sandbox:ro or host:sandbox:rw, as Docker
// has it: writable unless ro stands at the end. The error lacks the name of the
// setting or flag that held the text.
func ParseVolume(text string) (cove.Volume, error) {
	parts := strings.Split(text, ":")
	v := cove.Volume{Write: true}
	if len(parts) == 3 && (parts[2] == "ro" || parts[2] == "rw") {
		v.Write = parts[2] == "rw"
		parts = parts[:2]
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return v, fmt.Errorf("%.200q is not a volume; write host:sandbox or host:sandbox:ro, such as /srv/data:/data:ro", text)
	}
	v.Source, v.Target = parts[0], parts[1]
	if err := (cove.Spec{Volumes: []cove.Volume{v}}).Validate(); err != nil {
		return v, errors.New(strings.TrimPrefix(cove.MessageOf(err), "volumes: "))
	}
	return v, nil
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func suffixed(words []string, suffix string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w + suffix
	}
	return out
}
