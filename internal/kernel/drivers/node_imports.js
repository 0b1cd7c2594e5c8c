// What code runs in: the names it finds, how it loads modules, and what becomes of it
// before it runs. See node.js.
(function imports(require, typed, load) {
  'use strict';
  const {JSON, Map, Object, RegExp, String, SyntaxError, process} = globalThis;
  const modules = require('module');
  const path = require('path');
  const url = require('url');
  const vm = require('vm');
  const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const getcwd = process.cwd.bind(process);

  // where is the working directory, or the root where it was removed.
  function where() {
    try {
      return getcwd();
    } catch {
      return '/';
    }
  }

  // A loader and a require for each directory that code was in: what they find
  // depends on it.
  const places = new Map();

  function place() {
    const dir = where();
    let p = places.get(dir);
    if (p === undefined) {
      const file = path.join(dir, '[code]');
      p = {file, require: modules.createRequire(file)};
      p.load = loader === undefined ? (m, o) => load(near(p, m), o) : vm.runInThisContext('((m, o) => o === undefined ? import(m) : import(m, o))', {
        filename: file, importModuleDynamically: loader,
      });
      if (places.size > 64) places.clear();
      places.set(dir, p);
    }
    return p;
  }

  // near names a module that is found from a place so that it is found from anywhere:
  // Node 18 looks from where it was started.
  function near(p, m) {
    if (modules.isBuiltin(m) || /^[a-z]+:/.test(m)) return m;
    if (/^\.{0,2}\//.test(m)) return url.pathToFileURL(path.resolve(path.dirname(p.file), m)).href;
    try {
      return url.pathToFileURL(p.require.resolve(m)).href;
    } catch {
      return m; // a package that cannot be required can be imported
    }
  }

  // quietly calls what Node warns about, as an experiment or as a thing of the past.
  function quietly(f) {
    const warn = process.emitWarning;
    process.emitWarning = () => {};
    try {
      return f();
    } finally {
      process.emitWarning = warn;
    }
  }

  // bring is what import becomes. Names are those that the module must have.
  async function bring(name, options, names = []) {
    const found = await quietly(() => place().load(String(name), options));
    for (const n of names) {
      if (!(n in found)) throw new SyntaxError(`The requested module '${name}' does not provide an export named '${n}'`);
    }
    return found;
  }

  function meta() {
    const {file, require: from} = place();
    return {url: url.pathToFileURL(file).href, filename: file, dirname: path.dirname(file),
      resolve: (name) => (modules.isBuiltin(name) ? name : url.pathToFileURL(from.resolve(name)).href)};
  }

  function furnish() {
    const need = (name) => place().require(name);
    Object.defineProperties(need, Object.fromEntries(['resolve', 'cache', 'extensions', 'main'].map(
      (k) => [k, {enumerable: true, get: () => place().require[k]}])));
    const scope = {require: need, module: {exports: {}}, __cove_import: bring, __cove_meta: meta};
    for (const [name, value] of Object.entries(scope)) {
      Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});
    }
    Object.defineProperties(globalThis, {
      exports: {get: () => scope.module.exports, set(v) { scope.module.exports = v; }, configurable: true},
      __filename: {get: () => place().file, configurable: true},
      __dirname: {get: where, configurable: true},
    });
  }

  // Code runs as a script, in which an import statement is an error, and import() is
  // one where it comes by the inspector.

  const name = '[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*';
  const quoted = `"[^"\\n]*"|'[^'\\n]*'`;
  const statement = new RegExp(
    `import\\s*(?:(?:(${name})\\s*(?:,\\s*)?)?(?:\\*\\s*as\\s+(${name})\\s*|\\{([^{}]*)\\}\\s*)?from\\s*)?(${quoted})(?:\\s*(?:with|assert)\\s*(\\{[^{}]*\\}))?[ \\t]*;?`, 'uy');
  const part = new RegExp(`^(${name}|${quoted})(?:\\s+as\\s+(${name}))?$`, 'u');
  const comments = /\/\*[^]*?\*\/|\/\/[^\n]*/g;

  // rewrite returns the statement for an import, on as many lines.
  function rewrite([all, first, whole, some, from, options]) {
    const names = [];
    const binds = [];
    if (first !== undefined) {
      names.push('default');
      binds.push(`default: ${first}`);
    }
    for (const p of (some ?? '').replace(comments, '').split(',').map((t) => t.trim()).filter((t) => t !== '')) {
      const found = part.exec(p);
      if (found === null) return undefined;
      const theirs = /^["']/.test(found[1]) ? found[1].slice(1, -1) : found[1];
      names.push(theirs);
      binds.push(`${JSON.stringify(theirs)}: ${found[2] ?? found[1]}`);
    }
    const call = `await __cove_import(${from}, ${options === undefined ? 'undefined' : `{with: ${options}, assert: ${options}}`}, ${JSON.stringify(names)})`;
    const lines = '\n'.repeat(all.split('\n').length - 1);
    if (whole !== undefined) return `const ${whole} = ${call}${binds.length > 0 ? `, {${binds}} = ${whole}` : ''};${lines}`;
    return binds.length > 0 ? `const {${binds}} = ${call};${lines}` : `${call};${lines}`;
  }

  const token = /\s+|\/\/[^\n]*|\/\*[^]*?\*\/|"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'|[\p{ID_Continue}$\u200c\u200d]+|[^]/uy;
  const regex = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[\p{ID_Continue}$]*/uy;
  const beforeRegex = /^(?:return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield|instanceof)$/;

  // modernize replaces imports outside of strings, comments and regular expressions.
  function modernize(code) {
    let out = '';
    let before = ''; // the last token that means something
    const open = []; // brackets, and ` for a template
    let at = 0;
    const read = (re) => {
      re.lastIndex = at;
      const found = re.exec(code);
      return found === null ? undefined : found;
    };
    while (at < code.length) {
      if (open.at(-1) === '`') { // the text of a template
        const rest = /(?:\\[^]|\$(?!\{)|[^\\`$])*(?:\$\{|`|$)/y;
        const text = read(rest)?.[0] || code.slice(at);
        if (text.endsWith('${')) open.push('${');
        else open.pop();
        [out, at, before] = [out + text, at + text.length, text.endsWith('${') ? '(' : ')'];
        continue;
      }
      let text = read(token)[0];
      if (text === '/' && (!/[\p{ID_Continue}$)\]}]$/u.test(before) || beforeRegex.test(before))) text = read(regex)?.[0] ?? text;
      at += text.length;
      if (/^(?:\s|\/[/*])/.test(text)) {
        out += text;
        continue;
      }
      if (text === 'import' && before !== '.') {
        const next = /^(?:\s|\/\*[^]*?\*\/|\/\/[^\n]*\n)*(\S?)/.exec(code.slice(at, at + 10000))[1];
        const static_ = next !== '(' && next !== '.' && open.length === 0;
        at -= text.length;
        const found = static_ ? read(statement) : undefined;
        const made = found && rewrite(found);
        at += made ? found[0].length : text.length;
        const about = next === '.' && /^\s*\.\s*meta\b/.exec(code.slice(at));
        if (about) at += about[0].length;
        out += made ?? (about ? '__cove_meta()' : next === '(' ? '__cove_import' : text);
        before = made ? ';' : ')';
        continue;
      }
      if (text === '`' || text === '(' || text === '[' || text === '{') open.push(text);
      else if (text === ')' || text === ']' || text === '}') open.pop();
      [out, before] = [out + text, text];
    }
    return out;
  }

  // prepare makes of code what the inspector can run.
  function prepare(code) {
    if (typed) code = quietly(() => strip(code));
    if (/\bimport\b/.test(code)) code = modernize(code);
    if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
      try {
        const wrapped = `(${code}\n)`;
        new vm.Script(wrapped); // eslint-disable-line no-new
        return wrapped; // an object, not a block
      } catch {
        // It is a block.
      }
    }
    return code;
  }

  // strip takes the types out of TypeScript. What has no JavaScript of its own, such
  // as an enum, is transformed.
  function strip(code) {
    try {
      return modules.stripTypeScriptTypes(code, {mode: 'strip'});
    } catch (e) {
      if (e.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw e;
      try {
        return modules.stripTypeScriptTypes(code, {mode: 'transform'});
      } catch (worse) {
        throw worse.code === 'ERR_INVALID_ARG_VALUE' ? e : worse; // Node 26 transforms nothing, and e says what
      }
    }
  }

  return {furnish, place, prepare};
})
