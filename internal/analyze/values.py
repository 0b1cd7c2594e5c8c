# Tells what the names and expressions of Python code stand for, without running any
# of it. Comes before imports.py in the same program.
#
# An expression is followed as far as its value can be told from the text: sums of
# literals, names that are set to them, and what loads modules or runs text, under
# whatever name. Order and scopes are not followed: a name has all the values that
# it is given anywhere.
import ast
import binascii
import builtins
import sys

MOST_DEPTH = 40          # of an expression whose value is worked out
MOST_VALUES = 16         # that one expression may have
MOST_TEXT = 1 << 16      # of a text that is put together
MOST_CHANGES = 4         # of the values of a name, before only those count that tell something

UNKNOWN = None           # a value that only running the code would tell


class Ref:
    """What a name stands for: a module, or something in one, by its path."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = path

    def __eq__(self, other):
        return isinstance(other, Ref) and other.path == self.path

    def __hash__(self):
        return hash(self.path)


class Items:
    """A list, tuple, set or dictionary, by what it may hold."""

    __slots__ = ("of",)

    def __init__(self, of):
        self.of = frozenset(of)

    def __eq__(self, other):
        return isinstance(other, Items) and other.of == self.of

    def __hash__(self):
        return hash(self.of)


# What loads a module by name, and what runs the text it is given.
LOADS = {
    "builtins.__import__", "importlib.__import__", "importlib.import_module", "importlib.util.find_spec",
    "importlib.find_loader", "importlib.util.resolve_name", "pkgutil.resolve_name", "pkgutil.get_loader",
    "pkgutil.find_loader", "pydoc.locate", "pydoc.safeimport", "imp.load_module", "runpy.run_module",
}
RUNS = {
    "builtins.exec", "builtins.eval", "timeit.timeit", "timeit.repeat", "timeit.Timer", "cProfile.run", "cProfile.runctx",
    "builtins.compile", "profile.run", "profile.runctx", "code.InteractiveInterpreter.runsource", "pdb.run", "pdb.runeval",
}
ALWAYS = {"__import__", "exec", "eval", "getattr", "vars", "globals", "locals", "__builtins__"}

# Modules that others carry along by their own name, such as glob.os.
CARRIED = {"os", "posix", "subprocess", "shutil", "socket", "pathlib", "ctypes", "importlib", "builtins", "pty", "sys"}
CARRIED_BY_ALL = {"os", "subprocess", "shutil", "importlib", "builtins", "sys"}   # also by those of others
STANDARD = getattr(sys, "stdlib_module_names", frozenset(sys.builtin_module_names))
BUILTIN = frozenset(dir(builtins))

METHODS = {
    "lower", "upper", "title", "swapcase", "casefold", "capitalize", "strip", "lstrip", "rstrip", "replace", "join", "format",
    "decode", "encode", "removeprefix", "removesuffix", "fromhex", "translate", "hex", "__add__", "__str__", "__getitem__",
}
LOOKUPS = {"get", "pop", "setdefault", "__getitem__"}
TEXTS = (str, bytes)


def carried(module, name):
    """The module that another module has under a name."""
    bare = name.lstrip("_")
    top = module.partition(".")[0]
    if bare in CARRIED and top != "builtins" and module != bare and (top in STANDARD or bare in CARRIED_BY_ALL):
        return bare
    return None


def telling(value):
    """Whether a value is one of the few that the rules speak of."""
    return isinstance(value, Ref) and (value.path in LOADS | RUNS or value.path in ("builtins", "importlib", "sys", "sys.modules"))


class Values:
    """What the names of a piece of code may stand for."""

    def __init__(self):
        self.bound = {}     # name → what it is set to: nodes, values and ("items", node)
        self.known = {}     # name → its values
        self.changes = {}   # name → how often they did
        self.methods = set()
        self.inside = set()    # uses of parameters that are called like what is in Python
        self.deleted = set()   # names
        self.final = False  # the values of names do not change any more

    def learn(self, nodes):
        for node in nodes:
            self.bind(node)
        while self.settle():
            pass
        self.final = True

    # What names are set to.

    def set(self, target, *to):
        if isinstance(target, ast.Name):
            self.bound.setdefault(target.id, []).extend(to)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, to)
        elif isinstance(target, ast.Starred):
            self.set(target.value, UNKNOWN)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            if isinstance(target.value, ast.Call) and getattr(target.value.func, "id", "") in ("globals", "locals", "vars"):
                self.bound.setdefault(target.slice.value, []).extend(to)

    def unpack(self, targets, to):
        for one in to:
            if isinstance(one, (ast.Tuple, ast.List)) and len(one.elts) == len(targets):
                for target, value in zip(targets, one.elts):
                    self.set(target, value)
                continue
            for target in targets:
                self.set(target, ("items", one) if isinstance(one, ast.AST) else UNKNOWN)

    def named(self, name, to=UNKNOWN):
        if name:
            self.bound.setdefault(name, []).append(to)

    def bind(self, node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.set(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            self.set(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            self.named(node.target.id, ast.copy_location(ast.BinOp(left, node.op, node.value), node))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self.set(node.target, ("items", node.iter))
        elif isinstance(node, ast.arguments):
            self.parameters(node)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.set(node.optional_vars, UNKNOWN)
        elif isinstance(node, ast.ClassDef):
            self.named(node.name)
            self.methods.update(node.body)   # which are no names of the code
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node not in self.methods:
                self.named(node.name)
            self.shadow(node.args, node.body)
        elif isinstance(node, ast.Lambda):
            self.shadow(node.args, [node.body])
        elif isinstance(node, ast.Delete):
            self.deleted.update(getattr(t, "id", "") for t in node.targets)
        elif isinstance(node, ast.Import):
            for a in node.names:
                self.named(a.asname or a.name.partition(".")[0], Ref(a.name if a.asname else a.name.partition(".")[0]))
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                self.named(a.asname or a.name, Ref(node.module + "." + a.name) if node.module and not node.level else UNKNOWN)
        else:
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):   # of an exception or a pattern
                self.named(name)

    def shadow(self, args, body):
        names = {a.arg for a in args.posonlyargs + args.args + args.kwonlyargs} & ALWAYS
        if names:
            self.inside.update(n for part in body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id in names)

    def parameters(self, args):
        plain = args.posonlyargs + args.args
        for arg in plain + args.kwonlyargs + [a for a in (args.vararg, args.kwarg) if a]:
            self.named(arg.arg)
        pairs = list(zip(plain[len(plain) - len(args.defaults):], args.defaults)) + list(zip(args.kwonlyargs, args.kw_defaults))
        for arg, default in pairs:
            if default is not None:
                self.named(arg.arg, default)

    def settle(self):
        """One pass over all names; whether it taught something."""
        more = False
        for name, to in self.bound.items():
            values = set(self.known.get(name, ()))
            before = len(values)
            for one in to:
                if isinstance(one, tuple):
                    values |= self.items(self.values(one[1]))
                elif isinstance(one, ast.AST):
                    values |= self.values(one)
                else:
                    values.add(one)
            if self.changes.get(name, 0) > MOST_CHANGES or len(values) > 4 * MOST_VALUES:
                values = {v for v in values if telling(v)} | set(self.known.get(name, ())) | {UNKNOWN}
            if len(values) != before:
                self.known[name] = values
                self.changes[name] = self.changes.get(name, 0) + 1
                more = True
        return more

    # What expressions stand for.

    def values(self, node, depth=0):
        handler = getattr(self, "value_" + type(node).__name__, None)
        if handler is None or depth > MOST_DEPTH:
            return {UNKNOWN}
        values = handler(node, depth + 1)
        return values if len(values) <= MOST_VALUES else {v for v in values if telling(v)} | {UNKNOWN}

    def value_Constant(self, node, depth):
        return {node.value} if isinstance(node.value, (str, bytes, int)) else {UNKNOWN}

    def value_Name(self, node, depth):
        return self.name(node.id)

    def name(self, name):
        values = set(self.known.get(name, ()))
        if name == "__builtins__":
            values.add(Ref("builtins"))
        elif name in ALWAYS or name in BUILTIN and name not in self.bound:
            values.add(Ref("builtins." + name))
        elif name not in self.bound:   # it was set before, by other code
            values.add(Ref(name) if name in STANDARD else UNKNOWN)
        return values if values or not self.final else {UNKNOWN}

    def value_Attribute(self, node, depth):
        return self.attribute(self.values(node.value, depth), node.attr)

    def attribute(self, base, attr):
        out = set()
        for v in base:
            if not isinstance(v, Ref):
                out.add(UNKNOWN)
            elif attr in ("__dict__", "__call__"):
                out.add(v)
            elif attr == "__builtins__" or attr == "__self__" and v.path.startswith("builtins."):
                out.add(Ref("builtins"))
            else:
                out.add(Ref(carried(v.path, attr) or v.path + "." + attr))
        return out

    def value_Subscript(self, node, depth):
        base, out = self.values(node.value, depth), set()
        if isinstance(node.slice, ast.Slice):
            parts = [self.one(p, depth) if p is not None else None for p in (node.slice.lower, node.slice.upper, node.slice.step)]
            return {fold(lambda: v[slice(*parts)]) if isinstance(v, TEXTS) else UNKNOWN for v in base}
        for key in self.values(node.slice, depth):
            out |= self.lookup(base, key)
        return out

    def lookup(self, base, key):
        out = set()
        for v in base:
            if isinstance(v, Items):
                out |= v.of
            elif isinstance(v, Ref) and isinstance(key, str):
                out |= self.under(v, key)
            elif isinstance(v, TEXTS) and isinstance(key, int):
                out.add(fold(lambda: v[key]))
            else:
                out.add(UNKNOWN)
        return out

    def under(self, ref, key):
        if ref.path in ("sys.modules", "globals"):
            return {Ref(key)} if ref.path == "sys.modules" else self.name(key)
        return self.attribute({ref}, key)

    def items(self, values):
        out = set()
        for v in values:
            if isinstance(v, Items):
                out |= v.of
            elif isinstance(v, str) and len(v) <= MOST_VALUES:
                out |= set(v)
            else:
                out.add(UNKNOWN)
        return out

    def value_List(self, node, depth):
        out = set()
        for e in node.elts[:MOST_VALUES]:
            out |= self.values(e, depth)
        if len(node.elts) > MOST_VALUES:
            out.add(UNKNOWN)
        return {Items(out)}

    value_Tuple = value_Set = value_List

    def value_Dict(self, node, depth):
        return self.value_List(ast.List(elts=[v for v in node.values if v is not None]), depth)

    def one(self, node, depth):
        values = self.values(node, depth)
        return next(iter(values)) if len(values) == 1 else UNKNOWN

    def value_UnaryOp(self, node, depth):
        v = self.one(node.operand, depth)
        return {-v} if isinstance(node.op, ast.USub) and isinstance(v, int) else {UNKNOWN}

    def value_BinOp(self, node, depth):
        out = set()
        for a in self.values(node.left, depth):
            if isinstance(node.op, ast.Mod) and isinstance(a, TEXTS):
                right = self.argument(node.right, depth)
                out.add(fold(lambda: a % right) if right is not UNKNOWN else UNKNOWN)
                continue
            for b in self.values(node.right, depth):
                out.add(joined(node.op, a, b))
        return out

    def argument(self, node, depth):
        """The one value of an argument, also where it is a list or a tuple."""
        if isinstance(node, (ast.List, ast.Tuple)):
            parts = [self.one(e, depth) for e in node.elts[:64]]
            known = len(parts) == len(node.elts) and all(isinstance(p, (str, bytes, int)) for p in parts)
            return tuple(parts) if known else UNKNOWN
        v = self.one(node, depth)
        return v if isinstance(v, (str, bytes, int)) else UNKNOWN

    def value_JoinedStr(self, node, depth):
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion not in (-1, 115):
                    return {UNKNOWN}
                part = part.value
            parts.append(self.one(part, depth))
        if all(isinstance(p, (str, int)) for p in parts):
            return {fold(lambda: "".join(str(p) for p in parts))}
        return {UNKNOWN}

    def value_IfExp(self, node, depth):
        return self.values(node.body, depth) | self.values(node.orelse, depth)

    def value_BoolOp(self, node, depth):
        return set().union(*(self.values(v, depth) for v in node.values[:MOST_VALUES]))

    def value_NamedExpr(self, node, depth):
        return self.values(node.value, depth)

    def value_Call(self, node, depth):
        out, base = set(), ()
        if isinstance(node.func, ast.Attribute):   # looked at once, or long chains would never end
            base = self.values(node.func.value, depth)
            called = self.attribute(base, node.func.attr)
        else:
            called = self.values(node.func, depth)
        for f in called:
            out |= self.result(f, node, depth) if isinstance(f, Ref) else {UNKNOWN}
        if base and node.func.attr in METHODS | LOOKUPS:
            out |= self.method(base, node, depth)
        return out or {UNKNOWN}

    def result(self, f, node, depth):
        args = node.args
        if f.path in LOADS:
            names = [n for n in self.texts(node, ("name",), depth) if isinstance(n, str)]
            return {Ref(n) for n in names} | {Ref(n.partition(".")[0]) for n in names if f.path.endswith("__import__")}
        if f.path == "builtins.getattr" and len(args) > 1:
            return set().union(*(self.attribute(self.values(args[0], depth), n) if isinstance(n, str) else {UNKNOWN}
                                 for n in self.values(args[1], depth)))
        if f.path in ("builtins.globals", "builtins.locals") or f.path == "builtins.vars" and not args:
            return {Ref("globals")}
        if f.path == "builtins.vars":
            return self.values(args[0], depth)
        if f.path in ("builtins.compile", "ast.parse"):
            return self.texts(node, ("source",), depth)
        call = {"builtins.chr": chr, "builtins.str": str, "builtins.bytes": bytes, "builtins.ascii": ascii}.get(f.path)
        if f.path.startswith(("builtins.bytes.", "builtins.str.", "builtins.bytearray.")):
            kind, _, name = f.path[len("builtins."):].partition(".")
            call = getattr(str if kind == "str" else bytes, name, None) if name in METHODS else None
        elif f.path in ("base64.b64decode", "binascii.a2b_base64", "binascii.unhexlify", "codecs.decode"):
            call = binascii.unhexlify if f.path.endswith("unhexlify") else binascii.a2b_base64 if "64" in f.path else None
        plain = [self.argument(a, depth) for a in args] if call and not node.keywords else [UNKNOWN]
        return {fold(lambda: call(*plain)) if UNKNOWN not in plain else UNKNOWN}

    def method(self, base, node, depth):
        """What a method of a known text, or a look into a known dictionary, gives."""
        base = [v for v in base if v is not UNKNOWN]
        if not base:
            return {UNKNOWN}
        out, plain = set(), [self.argument(a, depth) for a in node.args]
        for v in base:
            if isinstance(v, (Ref, Items)) and node.func.attr in LOOKUPS and plain:
                out |= self.lookup({v}, plain[0])
            elif isinstance(v, TEXTS) and node.func.attr in METHODS and UNKNOWN not in plain and not node.keywords:
                out.add(fold(lambda: getattr(v, node.func.attr)(*plain)))
            else:
                out.add(UNKNOWN)
        return out

    def texts(self, node, keywords, depth=0):
        """What the first argument of a call may be, or one by a keyword."""
        first = [a for a in node.args[:1] if not isinstance(a, ast.Starred)] or [k.value for k in node.keywords if k.arg in keywords]
        return self.values(first[0], depth) if first else {UNKNOWN}


def fold(make):
    """The text that make returns, unless it is too long or cannot be made."""
    try:
        v = make()
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
        return UNKNOWN
    if isinstance(v, bytearray):
        v = bytes(v)
    return v if isinstance(v, int) or isinstance(v, TEXTS) and len(v) <= MOST_TEXT else UNKNOWN


def joined(op, a, b):
    if isinstance(a, Items) and isinstance(b, Items):
        return Items(a.of | b.of)
    if isinstance(a, int) and isinstance(b, int):
        if isinstance(op, (ast.Add, ast.Sub, ast.BitXor)) and abs(a) < 1 << 32 and abs(b) < 1 << 32:
            return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a ^ b
        return UNKNOWN
    if isinstance(op, ast.Add) and isinstance(a, TEXTS) and type(a) is type(b):
        return fold(lambda: a + b)
    if isinstance(op, ast.Mult) and {type(a), type(b)} in ({str, int}, {bytes, int}):
        text, times = (a, b) if isinstance(a, TEXTS) else (b, a)
        return fold(lambda: text * times) if len(text) * max(times, 0) <= MOST_TEXT else UNKNOWN
    return UNKNOWN
