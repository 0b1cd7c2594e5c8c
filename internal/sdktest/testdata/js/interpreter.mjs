import { Sandbox } from '@e2b/code-interpreter'
import { absent, box, fails, is, ok, show, test, unsupported } from './suite.mjs'

const made = (opts) => box(opts, Sandbox)

test('run_code', async () => {
  const s = await made()
  await s.runCode('x = 41')
  const got = await s.runCode('x + 1')
  is([got.text, got.results.length, got.results[0].isMainResult, got.error], ['42', 1, true, undefined], 'result')
  is((await s.runCode('"text"')).text, 'text', 'a string')
  ok(got.executionCount >= 2, `it ran ${got.executionCount} times`)
})

test('code_stream', async () => {
  const s = await made()
  const seen = { out: '', err: '', results: 0 }
  const got = await s.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\n7', {
    onStdout: (m) => (seen.out += m.line),
    onStderr: (m) => (seen.err += m.line),
    onResult: () => seen.results++,
  })
  is([got.logs.stdout.join(''), got.logs.stderr.join('')], ['out\n', 'err\n'], 'logs')
  is(seen, { out: 'out\n', err: 'err\n', results: 1 }, 'what was streamed')
})

test('code_runes', async () => {
  const s = await made()
  const got = await s.runCode('print("aé€😀" * 20000)')
  ok(got.logs.stdout.join('') === 'aé€😀'.repeat(20000) + '\n', 'a rune was split')
})

test('code_env', async () => {
  const s = await made({ envs: { A: 'create', B: 'create' } })
  const read = 'import os\nos.environ.get("A", "-") + " " + os.environ.get("B", "-")'
  is((await s.runCode(read, { envs: { B: 'run' } })).text, 'create run', 'in the run')
  is((await s.runCode(read)).text, 'create create', 'after it')
})

test('code_files', async () => {
  const s = await made()
  await s.files.write('numbers.txt', '1 2 3')
  is((await s.runCode('sum(map(int, open("numbers.txt").read().split()))')).text, '6', 'relative')
  is((await s.runCode('open("/home/user/numbers.txt").read()')).text, '1 2 3', 'by its whole name')
})

test('code_error', async () => {
  const s = await made()
  const { error } = await s.runCode('print("before")\n1/0')
  is([error.name, error.value], ['ZeroDivisionError', 'division by zero'], 'error')
  ok(error.traceback.includes('ZeroDivisionError'), `traceback: ${show(error.traceback)}`)
})

test('code_png', async () => {
  const s = await made()
  const got = await s.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()')
  const png = got.results.find((r) => r.png)?.png
  ok(png, `no picture: ${show(got)}`)
  is(Buffer.from(png, 'base64').subarray(1, 4).toString(), 'PNG', 'what it is')
})

test('code_chart', async () => {
  const s = await made()
  const got = await s.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()')
  const chart = got.results.find((r) => r.chart)?.chart
  await unsupported(chart ? Promise.resolve(chart) : Promise.reject(new Error('no chart')), /no chart/)
})

test('code_data', async () => {
  const s = await made()
  const got = await s.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})')
  is(got.results[0]?.data, { a: [1, 2], b: ['x', 'y'] }, 'data')
  ok(got.results[0].html.includes('<table'), 'no table')
})

test('code_js', async () => {
  const s = await made()
  await s.runCode('let y = 20', { language: 'javascript' })
  is((await s.runCode('y * 2 + 2', { language: 'js' })).text, '42', 'text')
})

test('code_bash', async () => {
  const s = await made()
  const got = await s.runCode('echo $((6*7))', { language: 'bash' })
  is(got.logs.stdout.join(''), '42\n', 'stdout')
})

test('code_other', async () => {
  const s = await made()
  await unsupported(s.runCode('1 + 1', { language: 'r' }), /no interpreter|400 Bad Request/)
})

test('contexts', async () => {
  const s = await made()
  const context = await s.createCodeContext({ language: 'python', cwd: '/tmp' })
  await s.runCode('z = 5')
  is((await s.runCode('import os\n"z" in globals(), os.getcwd()', { context })).text, "(False, '/tmp')", 'what another context sees')
  is(context.cwd, '/tmp', 'cwd')
})

test('context_list', async () => {
  absent(Sandbox.prototype.listCodeContexts)
  const s = await made()
  const context = await s.createCodeContext()
  const ids = (await s.listCodeContexts()).map((c) => c.id)
  ok(ids.includes(context.id), `${context.id} is not in ${show(ids)}`)
  await s.removeCodeContext(context)
  ok(!(await s.listCodeContexts()).some((c) => c.id === context.id), 'it is still there')
})

test('context_restart', async () => {
  absent(Sandbox.prototype.restartCodeContext)
  const s = await made()
  const context = await s.createCodeContext()
  await s.runCode('z = 5', { context })
  await s.restartCodeContext(context)
  is((await s.runCode('"z" in globals()', { context })).text, 'False', 'what is left')
})

test('code_disconnect', async () => {
  const s = await made()
  await s.runCode('x = 1')
  await fails(s.runCode('import time\nwhile True: time.sleep(0.01)', { timeoutMs: 2_000 }), 'TimeoutError')
  is((await s.runCode('x + 1')).text, '2', 'what it remembers after')
})
