# Tells what stands in Python code, for a policy that knows what may. Follows
# imports.py in the same program; the words are those of internal/pypolicy/fact.
#
# Each fact is told once, at its first place. A name that an import binds stands for
# what it imports wherever it is used: order and scopes are not followed.
import re

MOST_FACTS = 4000
MOST_KEYWORDS = 64
MOST_QUERIES = 256        # texts that are read as code, in all
PRESET = {"pd": "pandas", "np": "numpy"}   # what a run has without an import

SPECIAL = re.compile(r"__[A-Za-z0-9_]+__")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
QUOTED = re.compile(r"`[^`\n]*`")
BY_NAME = {"apply", "agg", "aggregate", "transform", "applymap", "map", "pipe"}   # methods that call others by name
FIRST = {"apply", "agg", "aggregate", "transform"}   # those that take the name of any method, first
BY_AGGFUNC = {"pivot_table", "crosstab"}              # and by this keyword
FREE = {"axis", "engine", "engine_kwargs", "numeric_only"}   # keywords that name nothing
EVALUATE = {"eval", "query"}
OPTIONS = {"set_option", "option_context", "reset_option", "set_eng_float_format"}
BUILT = (ast.BinOp, ast.JoinedStr, ast.Subscript)   # what puts texts together


CONTAINERS = {"dict", "list", "tuple", "set", "zip", "enumerate", "sorted", "reversed"}
FILL = {"append", "insert", "extend", "update", "setdefault", "add"}
# Methods that are handed over to be called.
CALLABLE = set("""get format upper lower title strip lstrip rstrip capitalize casefold join split startswith endswith replace count index
    match search fullmatch findall sub total_seconds strftime isoformat date time timestamp""".split())


class TooMuch(Exception):
    """More facts than an answer may have."""


class Facts(Values):
    def __init__(self, tree, where=None):
        super().__init__()
        self.tree, self.where = tree, where
        self.first = {}     # fact without its place → line, column
        self.paths = {name: {path} for name, path in PRESET.items()}   # name → what imports bind it to
        self.bases = set()  # nodes of which an attribute is taken
        self.calls = {}     # what is called → its call
        self.docs = set()   # literals that stand for themselves
        self.queries = 0
        self.defined = {}   # name → functions and classes of the code
        self.loops = {}     # name → what a loop takes it from, with others
        self.added = {}     # name → what is put into what it stands for
        self.taken = {}     # name → how often it is imported
        self.judged = {}    # name → whether it is fixed

    def add(self, node, kind, **more):
        at = self.where or node
        key = (kind, *sorted(more.items()))
        place = (at.lineno, at.col_offset + 1)
        if key not in self.first and len(self.first) >= MOST_FACTS:
            raise TooMuch
        self.first[key] = min(self.first.get(key, place), place)

    def find(self):
        nodes = list(ast.walk(self.tree))
        self.learn(nodes)
        for node in nodes:
            self.prepare(node)
        for node in nodes:
            getattr(self, "see_" + type(node).__name__, self.other)(node)
        return self.first

    def prepare(self, node):
        if isinstance(node, ast.Attribute):
            self.bases.add(node.value)
        elif isinstance(node, ast.Call):
            self.calls[node.func] = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            self.docs.add(node.value)
        elif isinstance(node, ast.Import):
            for a in node.names:
                path = a.name if a.asname else a.name.partition(".")[0]
                self.paths.setdefault(a.asname or path, set()).add(path)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for a in node.names:
                self.paths.setdefault(a.asname or a.name, set()).add(node.module + "." + a.name)

        elif isinstance(node, ast.alias):
            self.taken[node.name] = self.taken.get(node.name, 0) + 1
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.defined.setdefault(node.name, []).append(node)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and isinstance(node.target, ast.Tuple):
            for part in ast.walk(node.target):
                if isinstance(part, ast.Name):
                    self.loops.setdefault(part.id, []).append(node.iter)
        self.filled(node)

    def filled(self, node):
        """Notes what is put into lists and dictionaries."""
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript):
                    self.added.setdefault(root(target), []).append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILL:
            self.added.setdefault(root(node.func), []).extend([*node.args[-1:], *(k.value for k in node.keywords)])

    def path(self, node, depth=0):
        """What an expression is by its name, if that begins with an import."""
        if isinstance(node, ast.NamedExpr):
            return self.path(node.value, depth + 1) if depth < MOST_DEPTH else {""}
        if isinstance(node, ast.Name):
            return self.paths.get(node.id) or {""}
        if isinstance(node, ast.Attribute) and depth < MOST_DEPTH:
            return {p + "." + node.attr if p else "" for p in self.path(node.value, depth + 1)}
        return {""}

    def see_Import(self, node):
        for a in node.names:
            self.add(at(a, node), "import", of=a.name)
            self.special(at(a, node), a.asname)

    def see_ImportFrom(self, node):
        for a in node.names:
            self.add(at(a, node), "from", of="." * node.level + (node.module or ""), name=a.name)
            self.special(at(a, node), a.asname)

    def see_Name(self, node):
        for path in self.paths.get(node.id) or {""}:
            self.used(node, path)

    def used(self, node, path):
        if self.where is not None and not path and not SPECIAL.fullmatch(node.id):
            return   # in a text for pandas it is a column, or a variable that is told elsewhere
        if node.id == "getattr" and self.named_literally(node):
            return
        last = {"last": True} if path and node not in self.bases and isinstance(node.ctx, ast.Load) else {}
        builtin = {"builtin": True} if node.id in BUILTIN else {}
        self.add(node, "name", name=node.id, **({"of": path} if path else {}), **last, **builtin)

    def named_literally(self, node):
        call = self.calls.get(node)
        if call is None or call.keywords or not 2 <= len(call.args) <= 3:
            return False
        name = call.args[1]
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)) or isinstance(call.args[0], ast.Starred):
            return False
        for path in self.path(call.args[0]):
            self.add(name, "attribute", name=name.value, literal=True, last=True, **({"of": path} if path else {}))
        return True

    def see_Attribute(self, node):
        shape = {} if node in self.bases else {"last": True}
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            shape["own"] = True
        call = self.calls.get(node)
        if call is not None:
            shape.update(self.shape(call))
            self.called(node, call)
        for path in self.path(node.value):
            self.add(attribute_place(node), "attribute", name=node.attr, **({"of": path} if path else {}), **shape)

    def shape(self, call):
        shape = {"called": True}
        args = sum(not isinstance(a, ast.Starred) for a in call.args)
        keywords = tuple(sorted({k.arg for k in call.keywords if k.arg}))
        if args:
            shape["args"] = min(args, 3)
        if keywords:
            shape["keywords"] = keywords[:MOST_KEYWORDS]
        if args < len(call.args) or any(k.arg is None for k in call.keywords) or len(keywords) > MOST_KEYWORDS:
            shape["spread"] = True
        return shape

    def called(self, node, call):
        """Looks at the texts that are handed to a method which takes them for more than texts."""
        if node.attr in BY_NAME:
            for arg in [*call.args, *(k.value for k in call.keywords)]:
                self.by_name(arg)
        if node.attr in FIRST:
            self.handed(self.callees(node, call))
        elif node.attr in BY_AGGFUNC:
            named = [*call.args[3:], *(k.value for k in call.keywords if k.arg in ("aggfunc", None))]
            for arg in named:
                self.by_name(arg)
            self.handed(named)
        elif node.attr in EVALUATE:
            self.evaluated(call)
        elif node.attr in OPTIONS:
            for arg in call.args[::2]:
                for text in self.values(arg):
                    self.add(arg, "option", name=text[:200] if isinstance(text, str) else ANY)
            if not call.args:
                self.add(call, "option", name=ANY)
        elif node.attr in ("format", "format_map"):
            for text in self.values(node.value):
                self.texts_in(node, text)

    def by_name(self, arg):
        inside = list(ast.walk(arg))
        for value in [n.value for n in inside if isinstance(n, ast.Constant)] + self.flat(arg):
            if isinstance(value, str) and IDENTIFIER.match(value):
                self.add(arg, "method", name=value)
        if isinstance(arg, BUILT) and UNKNOWN in self.values(arg) and any(isinstance(n, (ast.Constant, ast.JoinedStr)) and isinstance(getattr(n, "value", ""), str) for n in inside):
            self.add(arg, "method", name=ANY)

    def callees(self, node, call):
        """What a method of FIRST calls."""
        frame = "" not in self.path(node.value)   # as pd.DataFrame.agg(orders, …)
        args = call.args[frame:]
        first = args[:1]
        if first and isinstance(first[0], ast.Name) and first[0].id not in self.bound:
            first = args[:2]   # as type(orders).agg(orders, …)
        if not args:
            named = node.attr in ("agg", "aggregate")
            first = [k.value for k in call.keywords if k.arg in ("func", None) or named and k.arg not in FREE]
        return first

    def handed(self, args):
        for arg in args:
            if not self.fixed(arg, pair=True):
                self.add(arg, "method", name=ANY)

    def fixed(self, node, depth=0, pair=False):
        """Whether all that an expression may give stands in the code: texts, functions, and lists and
        dictionaries of them. With pair, a tuple is a column and what is called."""
        def all_of(*nodes):
            return all(self.fixed(n, depth + 1, pair) for n in nodes)
        if depth > MOST_DEPTH:
            return False
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.Name):
            return self.fixed_name(node.id)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return all_of(*node.elts[1 if pair and isinstance(node, ast.Tuple) and len(node.elts) == 2 else 0:])
        if isinstance(node, ast.Dict):
            return all_of(*node.values)
        if isinstance(node, (ast.Starred, ast.NamedExpr, ast.DictComp)):
            return all_of(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return all_of(node.elt)
        if isinstance(node, ast.IfExp):
            return all_of(node.body, node.orelse)
        if isinstance(node, ast.BoolOp):
            return all_of(*node.values)
        if isinstance(node, ast.Attribute):
            return self.fixed_attribute(node)
        if isinstance(node, ast.Subscript) and (self.is_text(node.value) or not self.held(node.value)):
            return False
        values = self.values(node)
        if UNKNOWN not in values and not any(isinstance(v, Items) for v in values):
            return True
        if any(isinstance(v, TEXTS) for v in values):
            return False
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, (ast.Add, ast.BitOr)) and all_of(node.left, node.right) and not self.is_text(node.left) and not self.is_text(node.right)
        if isinstance(node, ast.Subscript):
            return all_of(node.value)
        return isinstance(node, ast.Call) and self.fixed_call(node, all_of)

    def is_text(self, node):
        return isinstance(node, ast.JoinedStr) or any(isinstance(v, TEXTS) for v in self.values(node))

    def held(self, node):
        """Whether an expression is more than a table, whose cells are not known."""
        return not isinstance(node, ast.Name) or node.id in self.bound

    def fixed_name(self, name):
        if name not in self.judged:
            self.judged[name] = True   # as far as it is made of itself
            to, loops = self.bound.get(name, []), self.loops.get(name, [])
            known = [one[1] if isinstance(one, tuple) else one for one in to if isinstance(one, (tuple, ast.AST))]
            told = len(loops) + len(self.defined.get(name, [])) + self.taken.get(name, 0)
            self.judged[name] = sum(one is UNKNOWN for one in to) <= told and all(
                self.fixed(n, 1, True) for n in [*known, *loops, *self.added.get(name, [])]) and all(
                self.held(n) for n in [*loops, *(one[1] for one in to if isinstance(one, tuple))])
        return self.judged[name]

    def fixed_attribute(self, node):
        if "" not in self.path(node):
            return True
        if isinstance(node.value, ast.Name) and node.value.id in BUILTIN and node.value.id not in self.bound:
            return True
        return node.attr in CALLABLE | self.defined.keys() and node.attr not in self.bound

    def fixed_call(self, node, all_of):
        func, values = node.func, [k.value for k in node.keywords]
        if isinstance(func, ast.Name) and func.id in self.defined:   # a function that makes functions
            return len(self.bound.get(func.id, ())) == 1 and all(all_of(*self.returned(d)) for d in self.defined[func.id])
        if isinstance(func, ast.Name) and func.id in CONTAINERS and func.id not in self.bound:
            return all_of(*node.args, *values)
        if self.path(func) & {"pandas.NamedAgg", "numpy.vectorize"}:
            return all_of(*node.args[-1:], *(k.value for k in node.keywords if k.arg != "column"))
        if isinstance(func, ast.Attribute) and func.attr == "fromkeys":
            return all_of(*node.args[1:])
        return isinstance(func, ast.Attribute) and func.attr in ("items", "values", "copy") and self.held(func.value) and all_of(func.value)

    def returned(self, function):
        """What a function returns itself, without those that are in it."""
        out, todo = [], list(getattr(function, "body", [])) if isinstance(function, ast.FunctionDef) else [None]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                out.append(node.value)
            elif node is None:
                out.append(ast.Await(value=None))   # an object of a class, or something that is awaited
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                todo += ast.iter_child_nodes(node)
        return out

    def flat(self, node):
        out = []
        for v in self.values(node):
            out += v.of if isinstance(v, Items) else [v]
        return out

    def evaluated(self, call):
        """Reads a text that pandas evaluates as the code that it is."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            self.add(call, "query", name=ANY)
        text = call.args[:1] or [k.value for k in call.keywords if k.arg == "expr"]
        for value in self.values(text[0]) if text else (UNKNOWN,):
            if isinstance(value, str):
                self.nested(text[0], value)
            else:
                self.add(text[0] if text else call, "query", name=ANY)

    def nested(self, node, text):
        self.queries += 1
        if self.queries > MOST_QUERIES or self.where is not None:
            self.add(node, "query", name=ANY)
            return
        try:
            tree = parse(QUOTED.sub("column", text.strip()).replace("@", ""))
        except (SyntaxError, ValueError):
            self.add(node, "query", name="!")
            return
        inner = Facts(tree, node)
        inner.paths = self.paths
        for key, place in inner.find().items():
            if key not in self.first and len(self.first) >= MOST_FACTS:
                raise TooMuch
            self.first[key] = min(self.first.get(key, place), place)

    def see_Constant(self, node):
        if node not in self.docs:
            self.texts_in(node, node.value)

    def texts_in(self, node, value):
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if not isinstance(value, str):
            return
        for word in set(SPECIAL.findall(value)):
            self.add(node, "text", name=word[:200])
        if value.startswith("to_") and IDENTIFIER.match(value):
            self.add(node, "word", name=value)

    def see_BinOp(self, node):
        for value in self.values(node):
            self.texts_in(node, value)

    see_JoinedStr = see_BinOp

    def see_ClassDef(self, node):
        self.special(node, node.name)
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and SPECIAL.fullmatch(part.name):
                self.add(part, "define", name=part.name[:200])
                self.docs.add(part)

    def see_FunctionDef(self, node):
        if node not in self.docs:
            self.special(node, node.name)

    see_AsyncFunctionDef = see_FunctionDef

    def see_MatchClass(self, node):
        for name in node.kwd_attrs:
            self.add(node, "attribute", name=name, last=True)

    def other(self, node):
        """Names that stand anywhere else."""
        for field in ("arg", "name", "rest", "names"):
            value = getattr(node, field, None)
            for name in value if isinstance(value, list) else [value]:
                self.special(node, name)

    def special(self, node, name):
        if isinstance(name, str) and SPECIAL.fullmatch(name):
            self.add(node, "special", name=name[:200])


def root(node):
    """The name that an expression begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


class Place:
    __slots__ = ("lineno", "col_offset")


def at(part, whole):
    return part if hasattr(part, "lineno") else whole


def attribute_place(node):
    """Where the name of an attribute stands: it is what comes last."""
    place = Place()
    place.lineno = getattr(node, "end_lineno", None) or node.lineno
    place.col_offset = max((getattr(node, "end_col_offset", None) or node.col_offset) - len(node.attr.encode()), 0)
    return place


def facts(tree):
    """All facts, in the order of the code."""
    try:
        first = Facts(tree).find()
    except TooMuch:
        return {"unread": "it has more than %d different things in it" % MOST_FACTS}
    found = sorted(((place, key) for key, place in first.items()), key=lambda f: (f[0], f[1][0], repr(f[1][1:])))
    return {"facts": [{"kind": key[0], "line": line, "column": column, **{k: v[:200] if isinstance(v, str) else v for k, v in key[1:]}} for (line, column), key in found]}
