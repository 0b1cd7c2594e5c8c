import { Sandbox } from 'e2b'
import { absent, box, fails, is, ok, show, test, unsupported, until } from './suite.mjs'

const background = { background: true, timeoutMs: 0 }

test('run', async () => {
  const s = await box()
  const seen = { out: '', err: '' }
  const got = await s.commands.run('echo out; echo err >&2', { onStdout: (d) => (seen.out += d), onStderr: (d) => (seen.err += d) })
  is([got.stdout, got.stderr, got.exitCode], ['out\n', 'err\n', 0], 'result')
  is(seen, { out: 'out\n', err: 'err\n' }, 'what was streamed')
})

test('run_fail', async () => {
  const s = await box()
  const err = await fails(s.commands.run('echo why >&2; exit 3'), 'CommandExitError')
  is([err.exitCode, err.stderr], [3, 'why\n'], 'result')
})

test('run_env_cwd_user', async () => {
  const s = await box({ envs: { A: 'create', B: 'create' } })
  const opts = { envs: { B: 'command' }, cwd: '/tmp', user: 'user' }
  is((await s.commands.run('echo $A $B $PWD $HOME', opts)).stdout, 'create command /tmp /home/user\n', 'stdout')
  is((await s.commands.run('pwd; cd; pwd')).stdout, '/home/user\n/home/user\n', 'where it starts')
})

test('run_root', async () => {
  const s = await box()
  await unsupported(s.commands.run('id', { user: 'root' }), /one user/)
})

test('run_timeout', async () => {
  const s = await box()
  await fails(s.commands.run('echo $$ > pid; exec sleep 1000', { timeoutMs: 2_000 }), 'TimeoutError')
  await until('the deadline kills it', async () => (await s.commands.list()).length === 0)
})

test('run_disconnect', async () => {
  const s = await box()
  const h = await s.commands.run('sleep 1000', background)
  await h.disconnect()
  is((await s.commands.list()).map((p) => p.pid), [h.pid], 'what runs')
  is(await s.commands.kill(h.pid), true, 'kill')
})

test('background', async () => {
  const s = await box()
  const h = await s.commands.run('echo one; read line; echo $line', { ...background, stdin: true })
  await until('the first line', async () => h.stdout === 'one\n')
  await s.commands.sendStdin(h.pid, 'two\n')
  const got = await h.wait()
  is([got.stdout, got.exitCode], ['one\ntwo\n', 0], 'result')
})

test('stdin', async () => {
  const s = await box()
  let seen = ''
  const h = await s.commands.run('cat', { ...background, stdin: true, onStdout: (d) => (seen += d) })
  h.wait().catch(() => {})
  await s.commands.sendStdin(h.pid, 'ünï\n')
  await until('it comes back', async () => seen === 'ünï\n')
  is(await h.kill(), true, 'kill')
})

test('close_stdin', async () => {
  absent(Sandbox.prototype.createSnapshot) // of the same time as closeStdin
  const s = await box()
  const h = await s.commands.run('wc -c', { ...background, stdin: true })
  await s.commands.sendStdin(h.pid, '12345')
  await s.commands.closeStdin(h.pid)
  is((await h.wait()).stdout.trim(), '5', 'stdout')
})

test('stream_input', async () => absent(false))

test('kill_command', async () => {
  const s = await box()
  const h = await s.commands.run('sleep 1000', background)
  is(await s.commands.kill(h.pid), true, 'kill')
  const err = await fails(h.wait(), 'SandboxError')
  ok(err.exitCode !== 0, 'it ended well')
  is(await s.commands.kill(h.pid), false, 'kill of what ended')
  is(await s.commands.kill(999999), false, 'kill of nothing')
})

test('list_commands', async () => {
  const s = await box()
  const h = await s.commands.run('sleep 1000', { ...background, cwd: '/tmp', envs: { A: '1' } })
  const [p, ...more] = await s.commands.list()
  is(more, [], 'others')
  is([p.pid, p.cmd, p.args, p.cwd], [h.pid, '/bin/bash', ['-l', '-c', 'sleep 1000'], '/tmp'], 'what runs')
  await h.kill()
})

test('connect_command', async () => {
  const s = await box()
  const h = await s.commands.run('read line; echo got $line', { ...background, stdin: true })
  await h.disconnect()
  let seen = ''
  const again = await s.commands.connect(h.pid, { onStdout: (d) => (seen += d), timeoutMs: 0 })
  await s.commands.sendStdin(h.pid, 'it\n')
  is((await again.wait()).exitCode, 0, 'exit code')
  is(seen, 'got it\n', 'what was streamed')
})

test('big_output', async () => {
  const s = await box()
  const got = await s.commands.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
  is([got.stdout.length, got.stdout.slice(-5)], [3000005, '\nend\n'], 'stdout')
})

test('runes', async () => {
  const s = await box()
  const got = await s.commands.run("for i in $(seq 20000); do printf 'aé€😀'; done")
  ok(got.stdout === 'aé€😀'.repeat(20000), `a rune was split: ${got.stdout.length} characters, ${got.stdout.split('\ufffd').length - 1} replaced`)
})

test('pty', async () => {
  const s = await box()
  let seen = ''
  const decoder = new TextDecoder()
  const h = await s.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (d) => void (seen += decoder.decode(d, { stream: true })) })
  h.wait().catch(() => {})
  await s.pty.sendInput(h.pid, new TextEncoder().encode('echo $((6*7)) $TERM\n'))
  await until('its answer', async () => seen.includes('42 xterm'))
  is(await s.pty.kill(h.pid), true, 'kill')
  await until('it is gone', async () => (await s.commands.list()).length === 0)
})

test('pty_resize', async () => {
  const s = await box()
  let seen = ''
  const decoder = new TextDecoder()
  const h = await s.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (d) => void (seen += decoder.decode(d, { stream: true })) })
  h.wait().catch(() => {})
  await s.pty.resize(h.pid, { cols: 101, rows: 31 })
  await s.pty.sendInput(h.pid, new TextEncoder().encode('stty size; exit\n'))
  await until('its answer', async () => seen.includes('31 101'))
})

test('pty_connect', async () => {
  absent(Sandbox.prototype.createSnapshot) // of the same time as pty.connect
  const s = await box()
  const h = await s.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: () => {} })
  await h.disconnect()
  let seen = ''
  const decoder = new TextDecoder()
  const again = await s.pty.connect(h.pid, { timeoutMs: 0, onData: (d) => void (seen += decoder.decode(d, { stream: true })) })
  again.wait().catch(() => {})
  await s.pty.sendInput(h.pid, new TextEncoder().encode('echo $((6*7))\n'))
  await until('its answer', async () => seen.includes('42'))
  await again.kill()
})

test('many_runs', async () => {
  const s = await box()
  for (let i = 0; i < 100; i++) {
    const got = await s.commands.run(`echo ${i}`).catch((err) => err)
    if (got.stdout !== `${i}\n`) throw new Error(`run ${i}: ${show(got.message ?? got)}`)
  }
})
