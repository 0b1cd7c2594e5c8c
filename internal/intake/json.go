package intake

import "github.com/cove-sandbox/cove"

// Bounds on JSON. The longest command has 32768 arguments.
const (
	MaxValues = 64 << 10 // values and names
	MaxDepth  = 64
)

// CheckJSON reports JSON with more values and names, or deeper, than anything here
// takes: an element of two bytes costs a hundred when it is decoded. It allocates
// nothing, and takes what is no JSON as it comes.
func CheckJSON(data []byte) error {
	values, depth := 0, 0
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		case '}', ']':
			depth--
			i++
			continue
		case '{', '[':
			depth++
			i++
		case '"':
			i = afterString(data, i)
		default:
			i = afterWord(data, i)
		}
		if values++; values > MaxValues {
			return overBound("the JSON holds more than %d values and names", MaxValues)
		}
		if depth > MaxDepth {
			return overBound("the JSON is nested more than %d levels deep", MaxDepth)
		}
	}
	return nil
}

// ValueEnd returns the length of the JSON value at the beginning of data, whose
// syntax must be right.
func ValueEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); {
		switch data[i] {
		case '"':
			i = afterString(data, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		default:
			i = afterWord(data, i)
		}
		if depth == 0 {
			return i
		}
	}
	return len(data)
}

// afterString returns the place behind the text that begins at i.
func afterString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// afterWord returns the place behind the number or word that begins at i.
func afterWord(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\n', '\r', ',', ':', '}', ']', '{', '[', '"':
			return i
		}
	}
	return len(data)
}

func overBound(format string, bound int) error {
	return cove.Errorf(cove.Invalid, format, bound).Reason(ReasonTooLarge).Remedy("send it in several requests, or as a file")
}
