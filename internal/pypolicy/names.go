package pypolicy

import (
	_ "embed"
	"strings"
)

// namesText is the list of what may be taken from modules.
//
//go:embed names.txt
var namesText string

// taken is what may be taken from each module, by its path.
var taken = parseNames(namesText)

func parseNames(text string) map[string]set {
	all, module := map[string]set{}, ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0, strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			module = strings.TrimSuffix(words[0], ":")
			all[module] = set{}
		default:
			for _, w := range words {
				all[module][w] = true
			}
		}
	}
	return all
}

// set is a set of words.
type set map[string]bool

func words(text string) set {
	s := set{}
	for w := range strings.FieldsSeq(text) {
		s[w] = true
	}
	return s
}

// isModule reports whether a path is one of the modules that code may use.
func isModule(path string) bool { return taken[path] != nil }

// What Python has without an import, of which code may use this, and the names that
// begin with a capital: exceptions and constants.
var builtins = words(`
	abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict dir divmod enumerate
	filter float format frozenset hasattr hash hex id int isinstance issubclass iter len list map max memoryview min next object oct
	ord pow print property range repr reversed round set slice sorted staticmethod str sum super tuple type zip`)

// Names that code may not use at all, not for variables either: whose they are
// depends on how the code runs.
var closed = words(`
	open exec eval compile input breakpoint globals locals vars getattr setattr delattr help exit quit copyright credits license`)

// Methods that a class may have.
var methods = words(`
	__init__ __post_init__ __new__ __repr__ __str__ __format__ __bytes__ __bool__ __int__ __float__ __index__ __hash__ __len__
	__iter__ __next__ __contains__ __getitem__ __setitem__ __delitem__ __call__ __enter__ __exit__
	__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __neg__ __pos__ __abs__ __invert__ __round__
	__add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __matmul__ __truediv__ __rtruediv__ __floordiv__
	__mod__ __pow__ __and__ __or__ __xor__ __lshift__ __rshift__`)

// Words of the form __x__ that say nothing of the interpreter.
var harmless = words(`__name__ __main__`)

// What reads files, for the better reason: no module gives it away.
var readers = words(`
	read_clipboard read_csv read_excel read_feather read_fwf read_gbq read_hdf read_html read_json read_orc read_parquet
	read_pickle read_sas read_spss read_sql read_sql_query read_sql_table read_stata read_table read_xml ExcelFile HDFStore
	load loads loadtxt genfromtxt fromfile fromregex memmap DataSource recfromcsv recfromtxt`)

// What writes files wherever it is found.
var writers = words(`
	to_clipboard to_excel to_feather to_gbq to_hdf to_iceberg to_orc to_parquet to_pickle to_sql to_stata tofile dump savefig
	print_figure print_jpeg print_jpg print_pdf print_pgf print_png print_ps print_raw print_rgba print_svg print_tif`)

// What writes files as functions of modules, for the better reason.
var moduleWriters = words(`save savetxt savez savez_compressed ExcelWriter show_versions`)

// What gives a text, and writes it to a file where it is told of one: by position or
// by these keywords.
var (
	texts       = words(`to_csv to_html to_json to_latex to_markdown to_string to_xml`)
	destination = words(`buf path path_or_buf path_or_buffer`)
)

// What leads from a value into the interpreter or to files.
var doors = words(`
	ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin gi_code gi_frame gi_yieldfrom
	f_back f_builtins f_code f_globals f_lasti f_locals f_trace tb_frame tb_next co_code co_consts func_globals func_code
	ctypes cffi from_custom_template from_string get_template select_template compile_expression call_filter plotting mro`)

// What takes texts for more than texts, and so is to be called where it stands, with
// texts that can be read.
var here = words(`eval query apply applymap agg aggregate transform set_option reset_option option_context`)

// Private names that are part of what a value offers: those of named tuples, which
// rows are.
var offered = words(`_asdict _fields _make _replace`)

// What draws, by a module that a keyword may name.
var drawers = words(`plot hist boxplot`)
