// The driver for Node: it runs code sent by the host and says how it ended. The
// package comment of internal/kernel describes the protocol. The whole file is one
// function, so that code which declares a name again cannot take it from the driver.
(function cove(require, words, read, load) {
  'use strict';
  const {Array, Atomics, Buffer, Date, Error, Int32Array, JSON, Math, Number, Object, Promise, Reflect, RegExp, SharedArrayBuffer, String, Symbol, clearInterval, process, setImmediate, setInterval} = globalThis;
  const fs = require('fs');
  const util = require('util');
  const {promiseHooks} = require('v8');
  const vm = require('vm');
  const {Session} = require('inspector');
  const {Writable} = require('stream');

  const [requests, home] = [3, {stdout: 4, stderr: 5}]; // descriptors; those of the code are 0 to 2
  const maxWrite = 4096; // a pipe does not tear it
  const maxPart = 4000; // of a frame's body
  const maxShown = 20 << 10; // of a value as text
  const maxText = 60 << 10; // of an error
  const maxJSON = 256 << 10; // of a value as JSON
  const maxNodes = 20000; // of a value that is tried as JSON
  const source = read(Number(read(8)));
  const {furnish, place, prepare} = new vm.Script(source, {filename: 'cove:driver'}).runInThisContext()(require, words.includes('typescript'), load);
  const {pid, ppid} = process;
  const realExit = process.reallyExit.bind(process);
  const kill = process.kill.bind(process);
  const then = Promise.prototype.then;

  // Frames and output.

  let marker;
  const nap = new Int32Array(new SharedArrayBuffer(4));

  // put writes all of a buffer. A pipe may have been made one that does not wait, by
  // any program that shares it.
  function put(fd, data) {
    for (let at = 0; at < data.length;) {
      try {
        at += fs.writeSync(fd, data, at, data.length - at);
      } catch (e) {
        if (e.code !== 'EAGAIN' && e.code !== 'EINTR') throw e;
        Atomics.wait(nap, 0, 0, 1);
      }
    }
  }

  function list(...texts) {
    return Buffer.concat(texts.flatMap((t) => {
      const b = Buffer.from(String(t));
      return [Buffer.from(b.length + ':'), b];
    }));
  }

  const none = Buffer.alloc(0);

  // frames returns what a body is sent as.
  function frames(kind, seq, body = none) {
    const all = [];
    for (let at = 0; ; at += maxPart) {
      const part = body.subarray(at, at + maxPart);
      const last = at + maxPart >= body.length;
      const head = Buffer.from(`${marker}${last ? kind : kind.toLowerCase()} ${seq} ${part.length}\n`, 'latin1');
      all.push(Buffer.concat([head, part]));
      if (last) return all;
    }
  }

  // send writes frames, with as few calls as a pipe leaves whole: each wakes who reads.
  function send(fd, all) {
    let some = [], size = 0;
    for (const f of all) {
      if (size + f.length > maxWrite && size > 0) {
        put(fd, Buffer.concat(some));
        some = [];
        size = 0;
      }
      some.push(f);
      size += f.length;
    }
    put(fd, some.length === 1 ? some[0] : Buffer.concat(some));
  }

  function say(kind, seq, body, fd = home.stdout) {
    send(fd, frames(kind, seq, body));
  }

  // leave ends the interpreter for a reason of the driver's.
  function leave(why) {
    for (const fd of [home.stdout, home.stderr]) {
      try {
        say('L', 0, list(why), fd);
        break;
      } catch {
        // The other one may still be there.
      }
    }
    realExit(70);
  }

  // Output is written at once, to the driver's own descriptors: so it is in order
  // with that of children, and nothing the code does to descriptor 1 loses it.
  let side = '';
  let points = 0;

  function write(to, data) {
    if (side !== to) {
      if (side !== '') {
        points++;
        say('B', points, undefined, home[side]);
        say('W', points, undefined, home[to]);
      }
      side = to;
    }
    put(home[to], data);
  }

  function outlet(to, fd) {
    const stream = new Writable({
      decodeStrings: true,
      autoDestroy: false,
      write(data, _, done) {
        write(to, data);
        done();
      },
    });
    // Nobody can close it: the next code has the same one.
    const stay = (...args) => {
      const [data, encoding] = args.filter((a) => typeof a !== 'function');
      if (data !== undefined && data !== null) stream.write(data, encoding);
      args.find((a) => typeof a === 'function')?.();
      return stream;
    };
    Object.assign(stream, {fd, _type: 'pipe', _isStdio: true, end: stay, destroy: () => stream, destroySoon() {}});
    Object.defineProperty(process, to, {configurable: true, enumerable: true, get: () => stream, set() {}});
  }

  // sure opens descriptors 1 and 2 again where the code has closed or replaced them:
  // children write to them.
  function sure() {
    for (const [fd, own] of [[1, home.stdout], [2, home.stderr]]) {
      try {
        const [a, b] = [inode(fd), inode(own)];
        if (b === undefined) leave('the code closed the descriptors of the interpreter');
        if (a === b) continue;
        if (a !== undefined) fs.closeSync(fd);
        const got = fs.openSync(`/proc/self/fd/${own}`, fs.constants.O_WRONLY);
        if (got !== fd) fs.closeSync(got);
      } catch {
        // What the code prints itself does not need them.
      }
    }
  }

  function inode(fd) {
    try {
      const s = fs.fstatSync(fd);
      return `${s.dev}:${s.ino}`;
    } catch {
      return undefined;
    }
  }

  // Running.

  const session = new Session();
  session.connect();
  const door = Symbol.for('cove');
  let visit; // what the next call through the door does
  let inside = 0; // calls under way that an interrupt ends
  Object.defineProperty(globalThis, door, {value: (v) => {
    const f = visit;
    visit = undefined;
    return f === undefined ? undefined : f(v);
  }});
  const gate = new vm.Script('globalThis[Symbol.for("cove")]()', {filename: 'cove:driver'});

  // unwound says that calls have ended without a word: Node, which counts those of
  // callbacks, ends itself where the count is wrong. What it does after an error that
  // nobody caught begins the count anew.
  const fatal = process._fatalException;

  function unwound() {
    if (typeof fatal !== 'function') return; // a Node that may end when code is interrupted
    const was = Object.getOwnPropertyDescriptor(process, 'emit');
    try {
      Object.defineProperty(process, 'emit', {value: () => true, configurable: true}); // nobody hears of it
      fatal(gone);
    } catch {
      // The code has a say in it, and said no.
    } finally {
      delete process.emit;
      if (was !== undefined) Object.defineProperty(process, 'emit', was);
    }
  }

  // ticks does what is due before anything from outside is. It is part of the code that
  // runs: so what follows an await of something that is there can be interrupted too.
  const drains = typeof process._tickCallback === 'function';

  function ticks() {
    try {
      if (drains) process._tickCallback();
    } catch (e) {
      unwound();
      setImmediate(() => { throw e; });
    }
  }

  // Node begins a watch for signals where code can be interrupted and ends it after
  // that; a signal that comes between the two ends Node itself. So one is begun with the
  // driver and never ended, and code is entered in the way that leaves it alone: Node's
  // own would take the listeners for signals away meanwhile. A Node that has no such way
  // is used as it is.
  const watch = (() => {
    try {
      const {startSigintWatchdog: begin, stopSigintWatchdog: end} = process.binding('contextify');
      const {runInContext} = Object.getPrototypeOf(vm.Script.prototype);
      const enter = (script) => Reflect.apply(runInContext, script, [null, -1, false, true, false]);
      return enter(new vm.Script('7')) === 7 && typeof begin === 'function' && typeof end === 'function' ? {begin, end, enter, thread: undefined} : undefined;
    } catch {
      return undefined;
    }
  })();

  // heard reports whether a signal came, since the last time, where it could interrupt
  // no code. To end a watch within another one is how Node tells that.
  function heard() {
    if (watch === undefined) return false;
    watch.begin();
    return watch.end();
  }

  // listen has signals come to the driver. Code may have taken its listener away, and
  // with the last one Node makes a signal its end.
  function listen() {
    if (process.listeners('SIGINT').includes(onSignal)) return;
    process.on('SIGINT', onSignal);
    if (watch === undefined) return;
    if (watch.thread !== undefined) watch.end();
    const others = tasks();
    watch.begin();
    watch.thread = tasks().find((t) => !others.includes(t)) ?? '';
  }

  function onSignal() {
    const c = cell;
    if (c !== undefined && !c.over) end(c, () => interrupted(c));
  }

  // guarded calls f so that an interrupt ends it, and reports whether one did.
  function guarded(f) {
    if (inside > 0) {
      f();
      return false;
    }
    visit = f;
    inside++;
    try {
      if (watch === undefined) gate.runInThisContext({breakOnSigint: true, displayErrors: false});
      else watch.enter(gate);
      return false;
    } catch (e) {
      if (e === null || typeof e !== 'object' || e.code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw e;
      unwound();
      return true;
    } finally {
      inside--;
    }
  }

  let cell; // what runs
  let spent = 0; // CPU time until the last one had ended
  const waiting = []; // requests
  const {env} = process;
  let lent = []; // variables for the next run alone, and then what they were
  const gone = new Error('process.exit was called'); // thrown where nothing better unwinds

  function run(seq, code) {
    const c = {seq, file: `cell-${seq}`, code, over: false, due: false, compiles: false, replied: false, lent: true, listens: undefined, held: undefined, failure: 0, exit: undefined, raised: undefined, values: []};
    cell = c;
    lent = lend(lent);
    side = '';
    sure();
    listen();
    heard(); // what came when nothing ran was for nobody
    let text;
    try {
      text = prepare(code);
    } catch (e) {
      return end(c, () => raise(c, e, e.at));
    }
    // The first promise is that of the code as a whole, which the inspector waits for.
    // Were it collected, as it is where nobody has what the code awaits, the inspector
    // would answer in the middle of that, which Node does not survive.
    const seen = promiseHooks.onInit((p) => {
      c.held = p;
      seen();
    });
    attempt(c, () => {
      c.compiles = true;
      session.post('Runtime.evaluate', {
        expression: `${text}\n//# sourceURL=${c.file}`, replMode: true, awaitPromise: true, objectGroup: 'cove',
      }, (failure, reply) => {
        c.replied = true;
        attempt(c, () => conclude(c, failure, reply));
      });
      c.compiles = false;
      ticks();
    });
    seen();
    if (watch !== undefined && !c.over) c.listens = setInterval(() => heard() && process.emit('SIGINT', 'SIGINT', 2), 20);
  }

  // attempt does a step of a run, unless it is over, and ends it when it was
  // interrupted or the driver itself went wrong.
  function attempt(c, step) {
    if (c.over) return;
    try {
      if (guarded(step)) end(c, () => interrupted(c));
    } catch (e) {
      end(c, () => raise(c, e));
    }
    if (c.over) conclusion(c);
  }

  function interrupted(c) {
    if (c.exit === undefined) {
      c.failure = 130;
      c.raised = ['KeyboardInterrupt', 'the code was interrupted; the variables are kept', '', 0];
    }
  }

  function conclude(c, failure, reply) {
    if (failure) return end(c, () => failure.message.endsWith('Execution was terminated') ? interrupted(c) : raise(c, new Error(failure.message)));
    const wrong = reply.exceptionDetails;
    const remote = wrong ? wrong.exception : reply.result;
    c.lent = wrong !== undefined || remote.objectId !== undefined;
    const value = valueOf(remote);
    if (wrong) return end(c, () => raise(c, value, c.compiles ? {line: wrong.lineNumber, column: wrong.columnNumber} : undefined));
    if (!util.types.isPromise(value)) return end(c, () => show(c, value));
    Reflect.apply(then, value, [
      (v) => attempt(c, () => end(c, () => show(c, v))),
      (e) => attempt(c, () => end(c, () => raise(c, e))),
    ]);
  }

  // valueOf fetches what the inspector names.
  function valueOf(remote) {
    if (remote.objectId === undefined) {
      if (remote.unserializableValue === undefined) return remote.type === 'object' ? null : remote.value;
      const text = remote.unserializableValue;
      return remote.type === 'bigint' ? globalThis.BigInt(text.slice(0, -1)) : Number(text);
    }
    let value;
    visit = (v) => { value = v; };
    session.post('Runtime.callFunctionOn', {
      functionDeclaration: 'function(v) { globalThis[Symbol.for("cove")](v); }',
      objectId: remote.objectId, arguments: [{objectId: remote.objectId}], silent: true,
    });
    return value;
  }

  // end ends a run, once, after what tells how it went.
  function end(c, tell) {
    if (c.over) return;
    try {
      tell();
    } catch (e) {
      c.failure = 1;
      c.raised = ['Error', 'what the code returned cannot be shown: ' + plainly(e), '', 0];
    }
    c.over = true;
    conclusion(c);
  }

  // conclusion has a run reported, once, and not where an interrupt could end it half
  // way: Node does not survive that in the middle of setImmediate.
  function conclusion(c) {
    if (inside > 0 || c.due) return;
    c.due = true;
    // A turn of the loop brings up promises that were rejected and that nobody handles.
    setImmediate(report, c);
  }

  function report(c) {
    clearInterval(c.listens);
    const exit = c.exit ?? (process.exitCode === undefined ? c.failure : Number(process.exitCode));
    process.exitCode = undefined;
    if (c.replied) {
      if (c.lent) session.post('Runtime.releaseObjectGroup', {objectGroup: 'cove'});
    } else {
      session.disconnect(); // it must not wait for what is held no more
      session.connect();
    }
    c.held = undefined;
    lend(lent);
    lent = [];
    const now = usage();
    try {
      say('M', c.seq, undefined, home.stderr);
      const all = [];
      if (c.exit === undefined) {
        for (const v of c.values) all.push(...frames('T', c.seq, v));
        if (c.raised) all.push(...frames('E', c.seq, list(...c.raised)));
      }
      all.push(...frames('D', c.seq, list(exit & 255, Math.max(0, now.cpu - spent), now.memory)));
      send(home.stdout, all);
    } catch (e) {
      leave('the code took the descriptors of the interpreter away');
    }
    spent = now.cpu;
    cell = undefined;
    next();
  }

  // lend sets variables and returns what they were; undefined is one that is not there.
  function lend(variables) {
    return variables.map(([name, value]) => {
      const was = env[name];
      if (value === undefined) delete env[name];
      else env[name] = value;
      return [name, was];
    });
  }

  // usage is what this process and its children, as far as they have ended, have
  // taken: microseconds, and kilobytes at most.
  function usage() {
    const r = process.resourceUsage();
    let cpu = r.userCPUTime + r.systemCPUTime;
    const f = stat();
    if (f !== undefined) cpu += (Number(f[13]) + Number(f[14])) * 10000;
    return {cpu, memory: r.maxRSS};
  }

  const facts = Buffer.alloc(4096);
  let file = -1; // where they are read, which is open because opening takes its time

  // stat returns the fields of /proc/self/stat after the name.
  function stat() {
    try {
      if (file < 0) file = fs.openSync('/proc/self/stat');
      const text = facts.latin1Slice(0, fs.readSync(file, facts, 0, facts.length, 0));
      if (!text.startsWith(`${pid} (`)) throw new Error(text);
      return text.slice(text.lastIndexOf(')') + 2).split(' ');
    } catch {
      file = -1; // the code has closed it, and the number may be that of another by now
      return undefined;
    }
  }

  // Values and errors.

  function show(c, value) {
    if (value === undefined) return;
    const forms = ['text/plain', cut(util.inspect(value, {depth: 4, maxArrayLength: 100, maxStringLength: 10000}), maxShown)];
    const json = asJSON(value);
    if (json !== undefined) forms.push('application/json', json);
    c.values.push(list(...forms));
  }

  function cut(text, most) {
    return text.length > most ? text.slice(0, most) + '…' : text;
  }

  function isPlain(value) {
    if (Array.isArray(value)) return true;
    const parent = Object.getPrototypeOf(value);
    return parent === null || parent === Object.prototype;
  }

  // asJSON returns the JSON of plain objects and arrays that are not too large.
  function asJSON(value) {
    if (value === null || typeof value !== 'object' || util.types.isProxy(value) || !isPlain(value)) return undefined;
    let left = maxNodes;
    try {
      const text = JSON.stringify(value, (_, v) => {
        if (--left < 0) throw new Error('large');
        return v;
      });
      return text === undefined || text.length > maxJSON ? undefined : text;
    } catch {
      return undefined;
    }
  }

  function plainly(e) {
    try {
      return cut(util.types.isNativeError(e) ? `${e.name}: ${e.message}` : util.inspect(e), 1000);
    } catch {
      return 'an error that cannot be shown';
    }
  }

  // raise keeps what was thrown: its name, its text, where, without frames of ours.
  function raise(c, e, at) {
    if (e === gone) return;
    c.failure = 1;
    if (!util.types.isNativeError(e) && !(e instanceof globalThis.Error)) {
      c.raised = ['Uncaught', cut(util.inspect(e), maxShown), '', 0];
      return;
    }
    let trace = trim(util.inspect(e, {depth: 4}));
    const here = new RegExp(`\\b${c.file}:(\\d+)`).exec(trace);
    let line = here === null ? 0 : Number(here[1]);
    if (here === null && e.name === 'SyntaxError' && at) {
      line = at.line + 1;
      const text = c.code.split('\n')[at.line] ?? '';
      trace = `${c.file}:${line}\n${cut(text, 200)}\n${' '.repeat(Math.min(at.column, 200))}^\n\n${trace}`;
    }
    c.raised = [String(e.name), cut(String(e.message), maxText), cut(trace, maxText), line];
  }

  // trim takes the frames of the driver, and those below them, out of a stack.
  function trim(text) {
    const kept = [];
    let below = false;
    for (const line of text.split('\n')) {
      const frame = /^\s+at /.test(line);
      below = frame && (below || /\(node:inspector:|\[as _tickCallback\]/.test(line));
      if (!below && !(frame && line.includes('cove:driver:'))) kept.push(line);
      else if (line.endsWith(' {')) kept[kept.length - 1] += ' {';
    }
    return kept.join('\n');
  }

  // stray hears of errors that no code handled.
  function stray(event) {
    return (e) => {
      if (e === gone || process.listenerCount(event) > 1) return;
      const c = cell;
      if (c === undefined) {
        const text = trim(util.inspect(e));
        write('stderr', Buffer.from(`Uncaught, after the code that caused it had ended: ${cut(text, maxShown)}\n`));
      } else if (!c.over) {
        end(c, () => raise(c, e));
      } else if (c.raised === undefined && c.exit === undefined) {
        raise(c, e);
      }
    };
  }

  // What code finds in its place.

  process.exit = function exit(code) {
    if (code !== undefined) process.exitCode = code;
    const c = cell;
    if (c === undefined) throw gone;
    c.exit = Number(process.exitCode ?? 0);
    process.exitCode = undefined;
    if (inside > 0) unwind();
    end(c, () => {});
    throw gone;
  };

  // unwind interrupts this very call, and with it code that would catch an error. Node
  // takes a signal to itself for its end, so it goes to another of its threads.
  function unwind() {
    try {
      kill(fs.readdirSync('/proc/self/task').map(Number).find((t) => t !== pid), 'SIGINT');
    } catch {
      return;
    }
    for (let i = 0; i < 2e9; i++); // no call: Node does not survive an interrupt in every one
  }

  // Interrupts that come late.

  const patience = 2000; // milliseconds for all of them to come
  let calming = false;

  // calm waits for interrupts that were meant for earlier code, so that none of them
  // ends what runs next. Some may be on their way through our parent, which passes them
  // on; others Node has kept. The thread of a watch is told of each by a count, and
  // leaves what it had no time for to the thread of the next watch. A thread that sleeps
  // has found nothing left.
  function calm() {
    const until = Date.now() + patience;
    asleep(ppid, until);
    if (watch !== undefined) {
      asleep(`self/task/${watch.thread}`, until);
      heard();
      return;
    }
    let again;
    do {
      const others = tasks();
      again = guarded(() => {
        for (const t of tasks()) if (!others.includes(t)) asleep(`self/task/${t}`, until);
      });
    } while (again && Date.now() < until);
  }

  function tasks() {
    try {
      return fs.readdirSync('/proc/self/task');
    } catch {
      return [];
    }
  }

  // asleep waits until a process or thread sleeps, or is not to be seen.
  function asleep(which, until) {
    while (Date.now() < until) {
      try {
        const text = fs.readFileSync(`/proc/${which}/stat`, 'latin1');
        if (text.startsWith(') S', text.lastIndexOf(')'))) return;
      } catch {
        return;
      }
      Atomics.wait(nap, 0, 0, 1);
    }
  }

  // settle puts the driver in the place of what Node does by itself.
  function settle() {
    furnish();
    outlet('stdout', 1);
    outlet('stderr', 2);
    process.argv.length = 1;
    process.execArgv.length = 0;
    Object.defineProperty(process, '_eval', {value: undefined, configurable: true}); // children that are forked would run it again
    listen();
    for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, stray(event));
  }

  // Requests.

  function unlist(body) {
    const words = [];
    for (let at = 0; at < body.length;) {
      const colon = body.indexOf(':', at);
      const end = colon + 1 + Number(body.latin1Slice(at, colon));
      words.push(body.utf8Slice(colon + 1, end));
      at = end;
    }
    return words;
  }

  function start([mark, warm, ...ahead]) {
    marker = mark;
    settle();
    for (const m of ahead) {
      try {
        place().require(m);
      } catch {
        // What is not there is not loaded ahead.
      }
    }
    spent = usage().cpu;
    const hello = () => say('H', 0, list(pid, stat()?.[2] ?? pid, process.versions.node));
    if (warm === '') return hello();
    place();
    const practice = {seq: 0, file: 'cell-0', code: '', values: [], over: true};
    const evaluate = (code, then) => guarded(() => session.post('Runtime.evaluate', {expression: prepare(code), replMode: true, awaitPromise: true, objectGroup: 'cove'}, then));
    evaluate('({a: [1, "b"]})', (_, r) => {
      show(practice, valueOf(r.result));
      evaluate('null.x', (_, r) => {
        raise(practice, valueOf(r.exceptionDetails.exception));
        session.post('Runtime.releaseObjectGroup', {objectGroup: 'cove'});
        usage();
        hello();
      });
    });
  }

  function adopt([dir, ...env]) {
    try {
      for (let i = 0; i + 1 < env.length; i += 2) process.env[env[i]] = env[i + 1];
      process.chdir(dir);
      say('A', 0, list(''));
    } catch (e) {
      say('A', 0, list(e.message));
    }
  }

  function borrow(words) {
    lent = [];
    for (let i = 0; i + 1 < words.length; i += 2) lent.push([words[i], words[i + 1]]);
  }

  function next() {
    if (cell !== undefined || calming || waiting.length === 0) return;
    const [kind, seq, body] = waiting.shift();
    if (kind === 'X') return run(seq, body.toString());
    if (kind === 'C') {
      calming = true;
      calm();
      // What Node heard meanwhile it tells in the next turn of its loop.
      return setImmediate(setImmediate, () => {
        calming = false;
        next();
      });
    }
    if (kind === 'I') start(unlist(body));
    else if (kind === 'A') adopt(unlist(body));
    else if (kind === 'V') borrow(unlist(body));
    else if (kind === 'P') say('P', 0);
    next();
  }

  const came = {chunks: [], size: 0, head: undefined};

  // take puts requests together from what came.
  function take(data) {
    came.chunks.push(data);
    came.size += data.length;
    for (;;) {
      if (came.head === undefined) {
        const all = Buffer.concat(came.chunks);
        const end = all.indexOf(10);
        came.chunks = [all];
        if (end < 0) return;
        const [kind, seq, length] = all.latin1Slice(0, end).split(' ');
        came.head = {kind, seq: Number(seq), length: Number(length)};
        came.chunks = [all.subarray(end + 1)];
        came.size = all.length - end - 1;
      }
      const {kind, seq, length} = came.head;
      if (came.size < length) return;
      const all = Buffer.concat(came.chunks);
      waiting.push([kind, seq, all.subarray(0, length)]);
      came.chunks = [all.subarray(length)];
      came.size = all.length - length;
      came.head = undefined;
      if (came.size === 0) break;
    }
    next();
  }

  const {Socket} = require('net');
  let input;
  try {
    input = new Socket({fd: requests, readable: true, writable: false});
  } catch {
    input = fs.createReadStream(null, {fd: requests}); // it is no pipe
  }
  input.on('data', take);
  for (const event of ['end', 'error', 'close']) input.on(event, () => leave('its input was closed'));
})
