package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// escape makes a text from elsewhere safe for a terminal: what would move the
// cursor, change colors or turn the direction of writing becomes visible.
func escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80 && unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// table writes rows in aligned columns, every cell escaped. An empty cell is a
// dash, so that columns can be cut by programs too.
func table(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		shown := make([]string, len(cells))
		for i, c := range cells {
			if shown[i] = escape(c); c == "" {
				shown[i] = "-"
			}
		}
		_, _ = io.WriteString(t, strings.Join(shown, "\t")+"\n") // Flush tells
	}
	line(head)
	for _, r := range rows {
		line(r)
	}
	return t.Flush()
}
