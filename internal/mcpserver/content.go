package mcpserver

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

// Bounds on what is shown beside the text of an answer.
const (
	maxImages = 4
	maxImage  = 1 << 20
)

// pictures are the kinds of image that models can look at.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// images are those among values, as far as they can be shown; the text of an answer
// names all of them.
func images(values []cove.Rich) []mcp.Content {
	var out []mcp.Content
	left := 0
	for _, v := range values {
		for _, kind := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(pictures, kind) {
				continue
			}
			data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v[kind]))
			if err != nil || len(data) > maxImage || len(out) == maxImages {
				left++
				continue
			}
			out = append(out, &mcp.ImageContent{Data: data, MIMEType: kind})
		}
	}
	if left > 0 {
		out = append(out, text(fmt.Sprintf("[%d of the images cannot be shown: at most %d are, of up to %s each; save them to files]", left, maxImages, cove.Bytes(maxImage))))
	}
	return out
}

// kindOf is the type of a file's content, by how it begins. Text is what is UTF-8
// and has no NUL.
func kindOf(head []byte) string {
	if utf8.Valid(wholeRunes(head)) && !strings.ContainsRune(string(head), 0) {
		return "text/plain"
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	if kind == "text/plain" {
		return "application/octet-stream"
	}
	return kind
}

// wholeRunes is p without a character that was cut in two at its end.
func wholeRunes(p []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return p[:len(p)-n]
			}
			return p
		}
	}
	return p
}
