package fake

import (
	"strconv"
	"strings"
)

// expression reads sums and products of numbers, texts and names.
type expression struct {
	rest string
	vars map[string]value
	env  map[string]string
	deep int
	err  error
}

// maxParens bounds how deep an expression nests.
const maxParens = 100

func (e *expression) raise(name, text string) value {
	if e.err == nil {
		e.err = &raised{name, text}
	}
	return value{}
}

// take skips spaces and then a letter, if it is next.
func (e *expression) take(letters string) byte {
	e.rest = strings.TrimLeft(e.rest, " \t")
	if e.rest == "" || !strings.Contains(letters, e.rest[:1]) {
		return 0
	}
	c := e.rest[0]
	e.rest = e.rest[1:]
	return c
}

func (e *expression) sum() value {
	v := e.product()
	for e.err == nil {
		switch e.take("+-") {
		case '+':
			v = e.add(v, e.product())
		case '-':
			v = e.number(v, e.product(), func(a, b int64) int64 { return a - b })
		default:
			return v
		}
	}
	return v
}

func (e *expression) add(a, b value) value {
	if a.str && b.str {
		return value{text: a.text + b.text, str: true}
	}
	return e.number(a, b, func(a, b int64) int64 { return a + b })
}

func (e *expression) number(a, b value, do func(a, b int64) int64) value {
	switch {
	case e.err != nil:
		return value{}
	case a.str || b.str:
		return e.raise("TypeError", "a text and a number do not mix")
	}
	return value{n: do(a.n, b.n)}
}

func (e *expression) product() value {
	v := e.factor()
	for e.err == nil {
		switch e.take("*/") {
		case '*':
			v = e.number(v, e.factor(), func(a, b int64) int64 { return a * b })
		case '/':
			d := e.factor()
			if e.err == nil && !d.str && d.n == 0 {
				return e.raise("ZeroDivisionError", "division by zero")
			}
			v = e.number(v, d, func(a, b int64) int64 { return a / b })
		default:
			return v
		}
	}
	return v
}

func (e *expression) factor() value {
	switch e.take(`(-"`) {
	case '(':
		if e.deep++; e.deep > maxParens {
			return e.raise("SyntaxError", "too many parentheses")
		}
		v := e.sum()
		e.deep--
		if e.err == nil && e.take(")") == 0 {
			return e.raise("SyntaxError", ") expected")
		}
		return v
	case '-':
		if e.deep++; e.deep > maxParens {
			return e.raise("SyntaxError", "too many signs")
		}
		v := e.number(value{}, e.factor(), func(_, b int64) int64 { return -b })
		e.deep--
		return v
	case '"':
		text, rest, _ := strings.Cut(e.rest, `"`)
		e.rest = rest
		return value{text: text, str: true}
	}
	end := strings.IndexFunc(e.rest, func(c rune) bool { return !isName("_" + string(c)) })
	if end < 0 {
		end = len(e.rest)
	}
	word := e.rest[:end]
	e.rest = e.rest[end:]
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return value{n: n}
	}
	if v, ok := e.vars[word]; ok {
		return v
	}
	if v, ok := e.env[word]; ok {
		return value{text: v, str: true}
	}
	if !isName(word) {
		return e.raise("SyntaxError", "a value is missing")
	}
	return e.raise("NameError", "name '"+word+"' is not defined")
}
