package e2bapi

import (
	"net/http"

	"github.com/cove-sandbox/cove"
)

// LineText is lineText of a value that code showed.
func LineText(r cove.Rich, main bool) (string, error) {
	text, err := lineText(lineOf(r, main))
	return string(text), err
}

// Lines has f write lines of output to w.
func Lines(w http.ResponseWriter, r *http.Request, f func(chunk func(cove.Chunk))) {
	c := &call{h: New(Config{}), w: &answerWriter{ResponseWriter: w}, r: r}
	out := newLineWriter(c, func(error) {})
	defer out.close()
	f(out.chunk)
	out.rest()
}
