package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/cove-sandbox/cove"
)

// maxFileBytes bounds the settings file.
const maxFileBytes = 1 << 20

// readFile returns the tree of a settings file. One that nobody named may be
// missing. named is how the user named it: COVE_CONFIG or --config.
func readFile(path, named string) (node, error) {
	f, err := os.Open(path) //nolint:gosec // the user says which file holds the settings
	if named == "" {
		// A COVE_HOME that cannot be entered is complained about by whoever needs
		// it; here it is one without a settings file.
		if _, missing := os.Stat(path); missing != nil {
			return node{kind: isTree}, nil
		}
		named = "COVE_CONFIG"
	}
	if err != nil {
		return node{}, cove.InvalidField(named, "%s cannot be read (%s); name a file that can be read", path, cause(err))
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return node{}, cove.InvalidField(named, "%s cannot be read (%s); name a file that can be read", path, cause(err))
	}
	if len(data) > maxFileBytes {
		return node{}, cove.InvalidField(named, "%s is longer than %s; a settings file is shorter", path, cove.Bytes(maxFileBytes))
	}
	n, err := parseYAML(data)
	if err == nil && n.kind != isTree {
		err = atLine(n.line, "is %s and no settings; write lines such as provider: local", n.kind)
	}
	if err != nil {
		return node{}, inFile(path, path, err)
	}
	return n, nil
}

// cause is the last part of a path error: the path stands in the sentence.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// inFile makes the sentence about a setting or the whole of the file.
func inFile(path, field string, err error) error {
	le, ok := errors.AsType[*lineError](err)
	if !ok {
		return cove.InvalidField(field, "%s", err)
	}
	place := fmt.Sprintf("line %d of %s", le.line, path)
	if field == path {
		place = fmt.Sprintf("line %d", le.line)
	}
	return cove.InvalidField(field, "%s (%s)", le.text, place).With("line", le.line).With("file", path)
}

// treeSetting is a setting that only the file can hold.
type treeSetting interface{ fromNode(n node) error }

// applyFile sets all that the tree holds and refuses what it does not know.
func (l *loader) applyFile(path string, tree node) error {
	if len(tree.tree) == 0 {
		return nil
	}
	byKey := map[string]Setting{}
	sections := map[string]bool{}
	for _, s := range l.settings {
		byKey[s.Key] = s
		if section, _, ok := strings.Cut(s.Key, "."); ok {
			sections[section] = true
		}
	}
	delete(byKey, "")
	for _, b := range tree.tree {
		if !sections[b.key] {
			if err := l.applyBranch(path, byKey, b.key, b); err != nil {
				return err
			}
			continue
		}
		if b.node.kind != isTree && b.node.kind != isNothing {
			return inFile(path, b.key, atLine(b.line, "is %s; write a group of settings below it", b.node.kind))
		}
		for _, inner := range b.node.tree {
			if err := l.applyBranch(path, byKey, b.key+"."+inner.key, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loader) applyBranch(path string, byKey map[string]Setting, key string, b branch) error {
	s, ok := byKey[key]
	if !ok {
		return inFile(path, key, atLine(b.line, "is not a setting; %s", hint(key, byKey)))
	}
	if b.node.kind == isNothing {
		return inFile(path, key, atLine(b.line, "has no value; write one or remove the line"))
	}
	v, err := s.fromFile(b.node)
	if err != nil {
		if _, ok := errors.AsType[*lineError](err); !ok {
			err = atLine(b.line, "%s", err)
		}
		return inFile(path, key, err)
	}
	s.field(&l.config).Set(v)
	l.config.origins[s.name()] = Origin{Source: FromFile, Name: key, Place: fmt.Sprintf("%s:%d", path, b.line)}
	return nil
}

// fromFile reads a setting from its node: trees by their own rules, lists item
// by item, all else in the words of the environment.
func (s Setting) fromFile(n node) (reflect.Value, error) {
	if p := reflect.New(s.typ); s.onlyInFile() {
		t, ok := reflect.TypeAssert[treeSetting](p)
		if !ok || n.kind != isTree {
			return reflect.Value{}, atLine(n.line, "is %s; write a group of names below it", n.kind)
		}
		return p.Elem(), t.fromNode(n)
	}
	if n.kind == isText {
		return s.parse(n.text)
	}
	if s.typ.Kind() != reflect.Slice || n.kind != isList {
		return reflect.Value{}, atLine(n.line, "is %s; write a single value", n.kind)
	}
	words, err := n.words()
	if err != nil {
		return reflect.Value{}, err
	}
	if s.typ == reflect.TypeFor[[]string]() {
		return reflect.ValueOf(words), nil
	}
	return s.parse(strings.Join(words, ","))
}

// hint names the key that was meant, where one is near.
func hint(key string, known map[string]Setting) string {
	best, least := "", 3
	for k := range known {
		if d := distance(key, k); d < least || d == least && k < best {
			best, least = k, d
		}
	}
	if best == "" {
		return "remove it; docs/configuration.md lists all keys"
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// distance counts the letters to change, add or drop to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
