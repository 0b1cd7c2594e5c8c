# Finds what Python code imports, on its syntax tree, without running any of it.
# Follows values.py in the same program. Where the value of an expression cannot be
# told, the module is "?".

MOST_FOUND = 1000        # imports in an answer
MOST_LITERALS = 4        # of code in a literal of code in a literal

ANY = "?"

WHOLE = {"builtins.exec", "builtins.eval", "builtins.compile"}   # of whose arguments only the first is code
PASSED = {"builtins.__import__", "importlib.__import__", "importlib.import_module", "builtins.exec", "builtins.eval"}

# What leads to all modules, wherever it is taken from.
DOORS = {"__builtins__", "__import__", "__globals__", "__subclasses__", "__loader__", "__spec__", "f_globals", "f_builtins"}
FINDERS = {"meta_path", "path_hooks"}   # of sys
# What relative imports go by: code that sets it makes them lead anywhere.
PACKAGE = {"__package__", "__spec__", "__path__", "__name__"}


class Finder(Values):
    def __init__(self, tree, literals, where=None, how=None):
        super().__init__()
        self.tree, self.literals, self.where, self.how = tree, literals, where, how
        self.found = []

    def add(self, node, module, how, name=""):
        at = self.where or node
        entry = (at.lineno, at.col_offset + 1, module, name, self.how or how)
        self.found.append(entry)

    def find(self):
        nodes = list(ast.walk(self.tree))
        self.learn(nodes)
        for node in nodes:
            self.look(node)
        return self.found

    def look(self, node):
        looker = getattr(self, "look_" + type(node).__name__, None)
        if looker is not None:
            looker(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(node, ast.Attribute) and not (isinstance(node, ast.Call) and child is node.func):
                self.passed(node, child)

    def passed(self, parent, node):
        """Tells of what loads or runs code and is handed on, to be called who knows how."""
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
            return
        if isinstance(node, ast.Name) and (not isinstance(node.ctx, ast.Load) or node.id in self.bound and self.own(parent, node)):
            return
        for v in self.values(node):
            if isinstance(v, Ref) and v.path in PASSED:
                self.add(node, ANY, v.path.rpartition(".")[2])
                return
            if v == Ref("sys.modules") and not isinstance(parent, (ast.Compare, ast.Subscript)):
                self.add(node, ANY, "sys.modules")

    def own(self, parent, node):
        """Whether a name that the code sets cannot be what Python has under it, or does no harm where it stands."""
        if node.id not in ALWAYS or node in self.inside or isinstance(parent, (ast.If, ast.While, ast.UnaryOp, ast.Compare)):
            return True
        return any(isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and s.lineno < node.lineno
                   and any(getattr(t, "id", "") == node.id for t in s.targets) for s in self.tree.body) and node.id not in self.deleted

    def look_Import(self, node):
        for a in node.names:
            self.add(a if hasattr(a, "lineno") else node, a.name, "import")

    def look_ImportFrom(self, node):
        if node.level or not node.module:
            return
        for a in node.names:
            at = a if hasattr(a, "lineno") else node
            self.add(node, node.module, "from", "" if a.name == "*" else a.name)
            if node.module == "sys" and a.name in FINDERS:
                self.add(at, ANY, "importlib")
            if carried(node.module, a.name):
                self.add(at, carried(node.module, a.name), "from")

    def look_Name(self, node):
        if node.id in ("__builtins__", "__loader__", "__spec__") and isinstance(node.ctx, ast.Load):
            self.add(node, "builtins", node.id)
        if node.id in PACKAGE and isinstance(node.ctx, ast.Store):
            self.add(node, ANY, "importlib")

    def look_keyword(self, node):
        if node.arg in PACKAGE:
            self.add(node.value, ANY, "importlib")

    def look_Dict(self, node):
        for key in node.keys:
            if isinstance(key, ast.Constant) and key.value in PACKAGE:
                self.add(key, ANY, "importlib")

    def look_Attribute(self, node):
        if node.attr in DOORS and not any(isinstance(v, Ref) and v.path in ("builtins", "importlib") for v in self.values(node.value)):
            self.add(node, ANY, node.attr)
        for v in self.values(node.value):
            if not isinstance(v, Ref):
                continue
            if carried(v.path, node.attr):
                self.add(node, carried(v.path, node.attr), "attribute")
            elif v.path == "sys" and node.attr in FINDERS:
                self.add(node, ANY, "importlib")
            elif v.path == "sys.modules" and node.attr not in LOOKUPS:
                self.add(node, ANY, "sys.modules")
            elif node.attr == "__self__" and v.path.startswith("builtins."):
                self.add(node, "builtins", "__self__")

    def look_Subscript(self, node):
        if isinstance(node.slice, ast.Slice):
            return
        if isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant) and node.slice.value in PACKAGE:
            self.add(node, ANY, "importlib")
        self.looked_up(node, self.values(node.value), self.values(node.slice))

    def looked_up(self, node, base, keys):
        if any(k in DOORS for k in keys if isinstance(k, str)):
            self.add(node, ANY, next(k for k in keys if isinstance(k, str) and k in DOORS))
        for v in base:
            if not isinstance(v, Ref):
                continue
            for k in keys:
                if isinstance(k, str) and carried(v.path, k) and v.path != "sys.modules":
                    self.add(node, carried(v.path, k), "attribute")
                if v.path not in ("sys.modules", "builtins", "importlib"):
                    continue
                if v.path == "sys.modules":
                    self.add(node, k if isinstance(k, str) else ANY, "sys.modules")
                elif not isinstance(k, str):
                    self.add(node, ANY, v.path)

    def look_Call(self, node):
        for f in self.values(node.func):
            if not isinstance(f, Ref):
                continue
            how = f.path.rpartition(".")[2]
            if f.path in LOADS:
                self.loads(node, how)
            elif f.path in RUNS:
                self.runs(node, f.path, how)
            elif f.path == "builtins.getattr" and len(node.args) > 1:
                self.reaches(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS and node.args:
            self.looked_up(node, self.values(node.func.value), self.values(node.args[0]))

    def reaches(self, node):
        base, names = self.values(node.args[0]), self.values(node.args[1])
        for name in names:
            if isinstance(name, str) and name in DOORS - {"__import__"}:
                self.add(node, ANY, name)
            for v in base:
                if not isinstance(v, Ref):
                    continue
                if not isinstance(name, str):
                    if v.path in ("builtins", "importlib", "sys"):
                        self.add(node, ANY, "getattr")
                elif carried(v.path, name):
                    self.add(node, carried(v.path, name), "attribute")

    def loads(self, node, how):
        level = node.args[4:5] or [k.value for k in node.keywords if k.arg == "level"]
        if how == "__import__" and level and self.one(level[0], 0) != 0:
            self.add(node, ANY, how)   # from where, the other arguments say
        for name in self.texts(node, ("name", "mod_name", "fullname", "path")):
            if not isinstance(name, str):
                self.add(node, ANY, how)
                continue
            if name.startswith("."):
                package = node.args[1:2] or [k.value for k in node.keywords if k.arg == "package"]
                base = self.one(package[0], 0) if package else UNKNOWN
                name = base + "." + name.lstrip(".") if isinstance(base, str) else ANY
            self.add(node, name.partition(":")[0], how)
            fromlist = node.args[3:4] or [k.value for k in node.keywords if k.arg == "fromlist"]
            for taken in self.items(self.values(fromlist[0])) if fromlist else ():
                if isinstance(taken, str) and carried(name, taken):
                    self.add(node, carried(name, taken), how)

    def runs(self, node, path, how):
        args = [a for a in node.args if not isinstance(a, ast.Starred)]
        args += [k.value for k in node.keywords if path not in WHOLE or k.arg == "source"]
        if len(args) < len(node.args) or any(k.arg is None for k in node.keywords):
            self.add(node, ANY, how)
        for arg in args[:1] if path in WHOLE else args:
            for text in self.values(arg):
                if isinstance(text, TEXTS):
                    self.literal(arg, text, how)
                elif path in WHOLE and not (isinstance(text, int)):
                    self.add(node, ANY, how)

    def literal(self, node, text, how):
        if self.literals == 0:
            self.add(node, ANY, how)
            return
        if how == "eval":
            text = text.lstrip(" \t" if isinstance(text, str) else b" \t")
        try:
            tree = parse(text)
        except (SyntaxError, ValueError):
            try:
                tree = parse(text, FLUFL)   # which the code around it can ask for
            except (SyntaxError, ValueError):
                return   # nor will it run
        inner = Finder(tree, self.literals - 1, self.where or node, self.how or how)
        inner.bound = {name: list(to) for name, to in self.bound.items()}   # it sees the names around it
        inner.known = dict(self.known)
        self.found += inner.find()


FLUFL = 0x400000   # <> in place of !=


def parse(code, flags=0):
    return compile(code, "<code>", "exec", flags | ast.PyCF_ONLY_AST | getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0), True)


def trimmed(found):
    """All that was found, in the order of the code and in bounds. What is left out must not be overlooked."""
    found = sorted(set(found))
    if len(found) > MOST_FOUND:
        first = {}
        for entry in found:
            first.setdefault(entry[2:], entry)
        found = sorted(first.values())
    if len(found) > MOST_FOUND:
        last = found[MOST_FOUND]
        found = found[:MOST_FOUND] + [(last[0], last[1], ANY, "", "exec")]
    return [{"line": l, "column": c, "module": m[:200], "name": n[:200], "how": h} for l, c, m, n, h in found]


def mistake(e):
    """A syntax error as Python shows it."""
    name, line = type(e).__name__, getattr(e, "lineno", None) or 0
    value = str(getattr(e, "msg", None) or e)[:2000]
    if not isinstance(e, SyntaxError):
        name = "SyntaxError"
    shown = '  File "<code>", line %d\n' % line if line else ""
    text = (getattr(e, "text", None) or "").rstrip("\n")
    if text and len(text) <= 1000:
        shown += "    %s\n" % text.strip()
        at = (getattr(e, "offset", None) or 0) - 1 - (len(text) - len(text.lstrip()))
        if at >= 0:
            shown += "    %s^\n" % (" " * at)
    return {"name": name, "value": value, "line": line, "traceback": "%s%s: %s\n" % (shown, name, value)}
