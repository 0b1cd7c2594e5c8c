//go:build !lean

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/cove-sandbox/cove"
)

// maxSettings bounds the file of a client.
const maxSettings = 4 << 20

// put writes an entry into the client's file, which keeps all else. The file
// changes whole or not at all, and is left beside it as it was.
func (c mcpClient) put(path, name string, e mcpEntry) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // who keeps settings elsewhere goes on doing so
	}
	old, mode, err := readSettings(path)
	if err != nil {
		return err
	}
	var text []byte
	if c.list == "" {
		text, err = withTable(old, name, e)
	} else {
		text, err = withMember(old, []string{c.list, name}, e)
	}
	if err != nil {
		return cove.Wrap(cove.CodeOf(err), err, "%s: %s", path, cove.MessageOf(err)).Remedy("leave out --write, and put the entry there yourself")
	}
	if bytes.Equal(old, text) {
		return nil
	}
	if old != nil {
		if err := replaceFile(path+".bak", old, mode); err != nil {
			return err
		}
	}
	return replaceFile(path, text, mode)
}

func readSettings(path string) (text []byte, mode fs.FileMode, err error) {
	f, err := os.Open(path) //nolint:gosec // the settings of the user's own client
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, cove.Wrap(cove.Unavailable, err, "%s cannot be read", path)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxSettings+1))
	}
	switch {
	case err != nil:
		return nil, 0, cove.Wrap(cove.Unavailable, err, "%s cannot be read", path)
	case len(text) > maxSettings:
		return nil, 0, cove.Errorf(cove.Invalid, "%s is larger than %s, which no settings are", path, cove.Bytes(maxSettings))
	}
	return text, info.Mode().Perm(), nil
}

// replaceFile writes a file under another name first: it appears only whole.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	err := os.MkdirAll(dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(dir, ".cove-*.new")
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "%s cannot be written", path)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, errors.Join(err, os.Remove(f.Name())), "%s cannot be written", path)
	}
	return nil
}

// member is one of an object, in the order of the file.
type member struct {
	name  string
	value json.RawMessage
}

// withMember returns a JSON object with a value at a path of names; nil is an
// object of nothing. All else stays, in its order.
func withMember(object []byte, path []string, value any) ([]byte, error) {
	text, err := setMember(object, path, value)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the entry cannot be written")
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func setMember(object []byte, path []string, value any) ([]byte, error) {
	if len(path) == 0 {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, cove.Wrap(cove.Internal, err, "the entry cannot be written")
		}
		return text, nil
	}
	all, err := members(object)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(m member) bool { return m.name == path[0] })
	if i < 0 {
		i, all = len(all), append(all, member{name: path[0]})
	}
	if all[i].value, err = setMember(all[i].value, path[1:], value); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for n, m := range all {
		if n > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, cove.Wrap(cove.Internal, err, "the entry cannot be written")
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// members reads an object; nothing is an object of nothing.
func members(text []byte) ([]member, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	bad := cove.Errorf(cove.Invalid, "it is not a JSON object, or has comments, which would be lost")
	if !json.Valid(text) {
		return nil, bad
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, bad
	}
	var all []member
	for dec.More() {
		name, err := dec.Token()
		word, ok := name.(string)
		if err != nil || !ok {
			return nil, bad
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, bad
		}
		all = append(all, member{word, value})
	}
	return all, nil
}

// withTable adds a table to a TOML file. One that is there already is not touched:
// what else is in it nobody here can read.
func withTable(old []byte, name string, e mcpEntry) ([]byte, error) {
	text, err := tomlEntry(name, e)
	if err != nil || bytes.Contains(old, []byte(text)) {
		return old, err
	}
	head := regexp.MustCompile(`(?m)^\s*(\[\s*mcp_servers\s*\.\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*\]|\[\s*mcp_servers\s*\]|mcp_servers\b[^\n]*=)`)
	if head.Match(old) {
		return nil, cove.Errorf(cove.Conflict, "it has an entry %s already, or another form of list", name)
	}
	old = bytes.TrimRight(old, "\n")
	if len(old) > 0 {
		old = append(slices.Clip(old), "\n\n"...)
	}
	return append(old, text...), nil
}
