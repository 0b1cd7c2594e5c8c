package wire

import "unicode/utf8"

// texts gives bytes as text where they are UTF-8, and as bytes, which JSON
// carries in base64, where they are not.
func texts(data []byte) (text *string, raw []byte) {
	if utf8.Valid(data) {
		return new(string(data)), nil
	}
	return nil, data
}

// untexts is the way back; the bytes win where both are given.
func untexts(text *string, raw []byte) []byte {
	if len(raw) > 0 {
		return raw
	}
	if text == nil || *text == "" {
		return nil
	}
	return []byte(*text)
}

// names is texts for a name: the empty one is left out by its tag.
func names(name string) (text string, raw []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return "", []byte(name)
}

func unnames(text string, raw []byte) string {
	if len(raw) > 0 {
		return string(raw)
	}
	return text
}
