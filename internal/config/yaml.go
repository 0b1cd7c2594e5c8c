package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is one value of the file with its line: a text, a list or a tree. It
// stands between the YAML library and the settings.
type node struct {
	line int
	kind nodeKind
	text string
	list []node
	tree []branch
}

type branch struct {
	key  string
	line int
	node node
}

type nodeKind string

const (
	isNothing nodeKind = "nothing"
	isText    nodeKind = "a single value"
	isList    nodeKind = "a list"
	isTree    nodeKind = "a group of settings"
)

// lineError is a complaint about one line of the file.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

func atLine(line int, format string, args ...any) error {
	return &lineError{line: line, text: fmt.Sprintf(format, args...)}
}

// parseYAML reads one document. Anchors, aliases, tags and merge keys are
// refused: a settings file has no need of them, and each is a way to say
// something else than what it looks like.
func parseYAML(data []byte) (node, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return node{}, syntaxError(err)
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return node{kind: isTree, line: 1}, nil
	case 1:
		return convert(bodies[0])
	}
	return node{}, atLine(bodies[1].GetToken().Position.Line, "starts a second document; write all settings in one")
}

// syntaxError keeps the first line of the library's words: the rest is an
// excerpt of the file, which may hold secrets.
func syntaxError(err error) error {
	ye, ok := errors.AsType[yaml.Error](err)
	if !ok || ye.GetToken() == nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return atLine(1, "is not YAML: %.200s", first)
	}
	return atLine(ye.GetToken().Position.Line, "is not YAML: %.200s", ye.GetMessage())
}

func convert(n ast.Node) (node, error) {
	line := 1
	if t := n.GetToken(); t != nil {
		line = t.Position.Line
	}
	switch v := n.(type) {
	case *ast.NullNode:
		return node{kind: isNothing, line: line}, nil
	case *ast.LiteralNode:
		return node{kind: isText, line: line, text: v.Value.Value}, nil
	case *ast.StringNode:
		return node{kind: isText, line: line, text: v.Value}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node{kind: isText, line: line, text: v.GetToken().Value}, nil
	case *ast.SequenceNode:
		return convertList(v, line)
	case ast.MapNode:
		return convertTree(v, line)
	}
	return node{}, atLine(line, "uses %s, which settings files do not know; write the value itself", strings.ToLower(n.Type().String()))
}

func convertList(v *ast.SequenceNode, line int) (node, error) {
	out := node{kind: isList, line: line}
	for _, item := range v.Values {
		n, err := convert(item)
		if err != nil {
			return node{}, err
		}
		out.list = append(out.list, n)
	}
	return out, nil
}

func convertTree(v ast.MapNode, line int) (node, error) {
	out := node{kind: isTree, line: line}
	for it := v.MapRange(); it.Next(); {
		key, ok := it.Key().(ast.ScalarNode)
		if !ok || it.Key().IsMergeKey() {
			return node{}, atLine(it.Key().GetToken().Position.Line, "has a key that is not a plain word; write a word")
		}
		n, err := convert(it.Value())
		if err != nil {
			return node{}, err
		}
		out.tree = append(out.tree, branch{key: key.GetToken().Value, line: key.GetToken().Position.Line, node: n})
	}
	return out, nil
}

// words returns the texts of a list, or of a single value with commas.
func (n node) words() ([]string, error) {
	if n.kind == isText {
		return parseList(n.text)
	}
	if n.kind != isList {
		return nil, atLine(n.line, "is %s; write a list such as [a, b]", n.kind)
	}
	var words []string
	for _, item := range n.list {
		if item.kind != isText {
			return nil, atLine(item.line, "has %s in its list; write plain words", item.kind)
		}
		words = append(words, item.text)
	}
	return words, nil
}
