package policy

import (
	"fmt"
	"slices"
	"strings"
)

// pythonModules may be imported by code that is judged. None of them starts
// programs or runs text, and what they import themselves is kept out by name.
var pythonModules = words{
	"json", "csv", "sys", "re", "math", "cmath", "statistics", "datetime", "time", "calendar", "collections", "itertools",
	"functools", "operator", "string", "random", "decimal", "fractions", "textwrap", "hashlib", "hmac", "base64", "binascii",
	"html", "unicodedata", "bisect", "heapq", "pprint", "copy", "difflib", "struct", "array", "zlib", "gzip", "bz2", "lzma",
	"zipfile", "glob", "fnmatch", "pathlib", "io", "secrets", "numbers", "configparser", "colorsys", "urllib.parse",
	"xml.etree.ElementTree", "collections.abc", "string.templatelib", "zoneinfo", "tomllib",
}

// pythonNames are refused wherever they stand as a name, as an attribute or as
// a part of what is imported: they run programs or text, or lead to what does.
var pythonNames = words{
	"os", "posix", "nt", "subprocess", "pty", "ctypes", "cffi", "importlib", "imp", "runpy", "pkgutil", "zipimport",
	"builtins", "exec", "eval", "compile", "execfile", "getattr", "setattr", "delattr", "globals", "locals", "vars",
	"breakpoint", "help", "modules", "meta_path", "path_hooks", "settrace", "setprofile", "displayhook", "breakpointhook",
	"bltns", "system", "popen", "popen2", "spawn", "fork", "forkpty", "execv", "execve", "execvp", "execl", "posix_spawn",
	"shutil", "socket", "asyncio", "multiprocessing", "webbrowser",
	"codeop", "codecs", "inspect", "gc", "pickle", "marshal", "shelve", "copyreg",
	"pdb", "bdb", "timeit", "doctest", "cProfile", "pydoc",
	"attrgetter", "methodcaller", "Formatter", "get_field", "vformat", "load_extension", "enable_load_extension",
	"get_type_hints", "ForwardRef", "dictConfig", "fileConfig", "f_globals", "f_locals", "f_builtins", "f_back",
	"tb_frame", "gi_frame", "cr_frame", "ag_frame", "gi_code", "mro", "urlopen", "urlretrieve", "ftplib", "smtplib",
	"linecache", "tokenize", "ast", "symtable", "dis", "reload", "find_spec", "import_module", "run_path", "run_module",
}

// pythonUnder are the names with a leading _ that may be used.
var pythonUnder = words{
	"_", "__", "__name__", "__init__", "__str__", "__repr__", "__len__", "__iter__", "__next__", "__eq__", "__lt__",
	"__hash__", "__enter__", "__exit__", "_asdict", "_fields", "_replace", "_make",
}

var (
	pythonName1   = newPattern(`^[A-Za-z_][A-Za-z0-9_]*`)
	pythonNumber  = newPattern(`^[0-9][0-9A-Za-z_]*`)
	pythonWords   = newPattern(`[A-Za-z_][A-Za-z0-9_]*`)
	pythonCoding  = newPattern(`coding[:=]`)
	pythonPrefix  = newPattern(`^(?i)(r|u|b|f|t|br|rb|fr|rf|tr|rt)$`)
	pythonImport  = newPattern(`^import\s+([A-Za-z0-9_.,\s]+)$`)
	pythonFrom    = newPattern(`^from\s+([A-Za-z0-9_.]+)\s+import\s+([A-Za-z0-9_,\s()]+)$`)
	pythonAs      = newPattern(`\s+as\s+[A-Za-z_][A-Za-z0-9_]*\s*$`)
	pythonUnclear = "this python code cannot be read with certainty; write it to a file"
)

// pythonReason returns why code is refused, or "". It is no parser: it finds
// the names and the imports, and is careful about where texts end.
func pythonReason(code string) string {
	l := pythonLexer{rest: code}
	for l.rest != "" {
		if reason := l.token(); reason != "" {
			return reason
		}
	}
	return l.endStatement()
}

// pythonLexer goes through code. The statement it is in is collected without
// its texts, so that imports can be read.
type pythonLexer struct {
	rest      string
	prev      byte // the byte before rest
	depth     int  // of brackets
	statement strings.Builder
}

func (l *pythonLexer) take(n int) string {
	text := l.rest[:n]
	l.rest = l.rest[n:]
	if n > 0 {
		l.prev = text[n-1]
	}
	return text
}

func (l *pythonLexer) token() string {
	c := l.rest[0]
	switch {
	case letter(c):
		return l.name()
	case c >= '0' && c <= '9':
		l.statement.WriteString(l.take(len(pythonNumber.FindString(l.rest))))
	case c == '\'' || c == '"':
		return l.str("")
	case c == '#':
		line, _, _ := strings.Cut(l.rest, "\n")
		if pythonCoding.MatchString(line) {
			return "python reads the rest of this code in another encoding"
		}
		l.take(len(line))
	case c == hole:
		return l.hole()
	case c == '\\':
		if !strings.HasPrefix(l.rest, "\\\n") {
			return pythonUnclear
		}
		l.take(2)
		l.statement.WriteByte(' ')
	case c >= 0x80 || c < ' ' && c != '\n' && c != '\t':
		return "names in python code must be plain ASCII; python takes look-alikes for the same name"
	case c == '\n' && l.depth == 0 || c == ';' || c == ':' && l.depth == 0:
		l.take(1)
		return l.endStatement()
	default:
		l.bracket(c)
		l.statement.WriteByte(c)
		l.take(1)
	}
	return ""
}

func (l *pythonLexer) bracket(c byte) {
	switch c {
	case '(', '[', '{':
		l.depth++
	case ')', ']', '}':
		l.depth = max(l.depth-1, 0)
	}
}

func (l *pythonLexer) name() string {
	word := pythonName1.FindString(l.rest)
	after := l.rest[len(word):]
	if after != "" && (after[0] == '\'' || after[0] == '"') {
		if !pythonPrefix.MatchString(word) {
			return pythonUnclear
		}
		l.take(len(word))
		return l.str(strings.ToLower(word))
	}
	l.take(len(word))
	before := l.statement.String()
	l.statement.WriteString(word)
	if word == "compile" && ofRegex(before) {
		return ""
	}
	return badName(word)
}

// ofRegex reports whether a statement ends in re. and not in core. or x.re.
func ofRegex(statement string) bool {
	rest, ok := strings.CutSuffix(statement, "re.")
	if !ok || rest == "" {
		return ok
	}
	last := rest[len(rest)-1]
	return last != '.' && !letter(last) && (last < '0' || last > '9')
}

func badName(word string) string {
	if pythonNames.has(word) || word[0] == '_' && !pythonUnder.has(word) {
		return fmt.Sprintf("python code on the command line cannot use %s; write a script file if you need it", shown(word))
	}
	return ""
}

// str takes a text. It may not reach into /proc; and where it holds code, as an
// f-string does, the names in it are judged.
func (l *pythonLexer) str(prefix string) string {
	quote := l.rest[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(l.rest, triple) {
		quote = triple
	}
	body := l.rest[len(quote):]
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] == '\\':
			if i++; i < len(body) && body[i] == hole {
				return pythonUnclear
			}
		case body[i] == hole:
			if i == 0 || i+1 == len(body) || strings.ContainsAny(body[i-1:i]+body[i+1:i+2], "'\"\\{}") {
				return pythonUnclear
			}
		case body[i] == '\n' && len(quote) == 1:
			return pythonUnclear
		case strings.HasPrefix(body[i:], quote):
			l.take(len(quote) + i + len(quote))
			l.statement.WriteString(" '' ")
			return stringReason(body[:i], prefix)
		}
	}
	return pythonUnclear
}

func stringReason(body, prefix string) string {
	if strings.Contains(body, "/proc") {
		return "python code on the command line cannot reach into /proc"
	}
	if !strings.ContainsAny(prefix, "ft") {
		return ""
	}
	// Since Python 3.12 a text inside a field may use the quotes of the whole.
	if strings.Count(body, "{") != strings.Count(body, "}") {
		return pythonUnclear
	}
	for i := range len(body) {
		if body[i] >= 0x80 && strings.Contains(body, "{") {
			return "an f-string with fields must be plain ASCII"
		}
	}
	for _, word := range pythonWords.FindAllString(body, -1) {
		if reason := badName(word); reason != "" {
			return reason
		}
	}
	return ""
}

// hole takes a number that is not known, which may be empty.
func (l *pythonLexer) hole() string {
	const around = " \t\n()+*/%<>=,[]:-"
	before := l.prev == 0 || strings.IndexByte(around, l.prev) >= 0
	l.take(1)
	if !before || l.rest != "" && strings.IndexByte(around, l.rest[0]) < 0 {
		return pythonUnclear
	}
	l.statement.WriteByte('0')
	return ""
}

// endStatement looks at the statement that has just been read.
func (l *pythonLexer) endStatement() string {
	text := strings.TrimSpace(l.statement.String())
	l.statement.Reset()
	if !strings.Contains(text, "import") {
		return ""
	}
	if m := pythonImport.FindStringSubmatch(text); m != nil {
		for module := range strings.SplitSeq(m[1], ",") {
			if reason := badModule(pythonAs.ReplaceAllString(module, "")); reason != "" {
				return reason
			}
		}
		return ""
	}
	if m := pythonFrom.FindStringSubmatch(text); m != nil {
		return badModule(m[1])
	}
	if slices.Contains(pythonWords.FindAllString(text, -1), "import") {
		return "python imports must stand alone, such as: import json, sys"
	}
	return ""
}

func badModule(name string) string {
	name = strings.TrimSpace(name)
	if pythonModules.has(name) {
		return ""
	}
	return fmt.Sprintf("python code on the command line cannot import %s; write a script file if you need it", shown(name))
}
