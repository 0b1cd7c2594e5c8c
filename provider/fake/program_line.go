package fake

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func runSort(c *call) int {
	opts, names, err := c.options("rnu")
	if err != nil {
		return c.complain("%v", err)
	}
	var lines []string
	code := c.inputs(names, func(_ string, r io.Reader) error {
		return c.each(r, func(line []byte) error {
			lines = append(lines, strings.TrimSuffix(string(line), "\n"))
			return c.p.charge(len(line))
		})
	})
	number := func(s string) float64 {
		n, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return n
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		way := cmp.Compare(a, b)
		if has(opts, "n") {
			way = cmp.Or(cmp.Compare(number(a), number(b)), way)
		}
		if has(opts, "r") {
			way = -way
		}
		return way
	})
	if has(opts, "u") {
		lines = slices.Compact(lines)
	}
	return max(code, c.buffered(func(w *bufio.Writer) int {
		for _, l := range lines {
			_, _ = w.WriteString(l + "\n")
		}
		return 0
	}))
}

func runUniq(c *call) int {
	opts, names, err := c.options("c")
	if err != nil {
		return c.complain("%v", err)
	}
	return c.buffered(func(w *bufio.Writer) int {
		last, count := "", 0
		flush := func() {
			if count > 0 && has(opts, "c") {
				_, _ = fmt.Fprintf(w, "%7d ", count)
			}
			if count > 0 {
				_, _ = w.WriteString(last + "\n")
			}
		}
		code := c.inputs(names, func(_ string, r io.Reader) error {
			return c.each(r, func(line []byte) error {
				if now := strings.TrimSuffix(string(line), "\n"); count == 0 || now != last {
					flush()
					last, count = now, 0
				}
				count++
				return nil
			})
		})
		flush()
		return code
	})
}

func runGrep(c *call) int {
	opts, rest, err := c.options("qvicFEnoe:")
	if err != nil || len(rest) == 0 && opts['e'] == "" {
		_ = c.complain("usage: grep [-qvicFEno] pattern [file...]")
		return exitSyntax
	}
	pat := opts['e']
	if pat == "" {
		pat, rest = rest[0], rest[1:]
	}
	if has(opts, "F") {
		pat = regexp.QuoteMeta(pat)
	}
	if has(opts, "i") {
		pat = "(?i)" + pat
	}
	rx, err := regexp.Compile(pat)
	if err != nil {
		_ = c.complain("invalid pattern")
		return exitSyntax
	}
	found := 0
	code := c.buffered(func(w *bufio.Writer) int {
		n := 0
		return c.inputs(rest, func(name string, r io.Reader) error {
			return enough(c.each(r, func(line []byte) error {
				n++
				text := strings.TrimSuffix(string(line), "\n")
				if rx.MatchString(text) == has(opts, "v") {
					return nil
				}
				found++
				switch {
				case has(opts, "q"):
					return errStop
				case has(opts, "c"):
					return nil
				case has(opts, "n"):
					_, _ = fmt.Fprintf(w, "%d:", n)
				}
				if len(rest) > 1 {
					_, _ = w.WriteString(name + ":")
				}
				if has(opts, "o") {
					text = strings.Join(rx.FindAllString(text, -1), "\n")
				}
				_, err := w.WriteString(text + "\n")
				return err
			}))
		})
	})
	switch {
	case code != 0:
		return exitSyntax
	case has(opts, "c"):
		_, _ = fmt.Fprintln(c.out, found)
	}
	return oneIf(found == 0)
}

func runTr(c *call) int {
	opts, sets, err := c.options("d")
	if err != nil || len(sets) == 0 || len(sets) == 1 && !has(opts, "d") {
		return c.complain("usage: tr [-d] set1 [set2]")
	}
	var swap [256]int
	for b := range swap {
		swap[b] = b
	}
	from := characters(sets[0])
	var to []byte
	if len(sets) > 1 {
		to = characters(sets[1])
	}
	for i, b := range from {
		switch {
		case has(opts, "d"):
			swap[b] = -1
		case len(to) > 0:
			swap[b] = int(to[min(i, len(to)-1)])
		}
	}
	buf := make([]byte, chunkSize)
	for {
		n, err := c.in.Read(buf)
		out := buf[:0]
		for _, b := range buf[:n] {
			if swap[b] >= 0 {
				out = append(out, byte(swap[b])) //nolint:gosec // the table holds bytes
			}
		}
		if _, werr := c.out.Write(out); werr != nil {
			return c.fault("write error", werr)
		}
		if err != nil {
			return oneIf(!errors.Is(err, io.EOF))
		}
	}
}

// characters spells a set of tr out.
func characters(set string) []byte {
	set, _, _ = format(set, nil)
	var list []byte
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' && set[i] <= set[i+2] {
			for b := int(set[i]); b <= int(set[i+2]); b++ {
				list = append(list, byte(b)) //nolint:gosec // between two bytes
			}
			i += 2
			continue
		}
		list = append(list, set[i])
	}
	return list
}

func runCut(c *call) int {
	opts, names, err := c.options("d:f:c:")
	if err != nil || !has(opts, "fc") {
		return c.complain("usage: cut -f list [-d delimiter] or cut -c list")
	}
	sep := opts['d']
	if sep == "" {
		sep = "\t"
	}
	wanted, err := ranges(opts['f'] + opts['c'])
	if err != nil {
		return c.complain("%v", err)
	}
	return c.inputs(names, func(_ string, r io.Reader) error {
		return c.each(r, func(line []byte) error {
			text := strings.TrimSuffix(string(line), "\n")
			parts, glue := strings.Split(text, sep), sep
			if has(opts, "c") {
				parts, glue = strings.Split(text, ""), ""
			}
			var kept []string
			for i, part := range parts {
				if wanted(i + 1) {
					kept = append(kept, part)
				}
			}
			if len(parts) == 1 && has(opts, "f") {
				kept = parts
			}
			_, err := io.WriteString(c.out, strings.Join(kept, glue)+"\n")
			return err
		})
	})
}

// ranges reads a list such as 1,3-5,7-.
func ranges(list string) (func(int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(list, ",") {
		a, b, dash := strings.Cut(part, "-")
		from, errA := strconv.Atoi(cmp.Or(a, "1"))
		to, errB := strconv.Atoi(cmp.Or(b, "2147483647"))
		if errA != nil || errB != nil || part == "" || from < 1 {
			return nil, errors.New("invalid field list: '" + list + "'")
		}
		if !dash {
			to = from
		}
		spans = append(spans, span{from, to})
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return n >= s.from && n <= s.to })
	}, nil
}
