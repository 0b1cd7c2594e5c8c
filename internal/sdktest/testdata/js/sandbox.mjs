import * as e2b from 'e2b'
import { absent, box, fails, is, ok, otherKey, show, test, unsupported, until } from './suite.mjs'

const { ALL_TRAFFIC, Sandbox } = e2b // the older one lacks some

test('create', async () => {
  const s = await box()
  ok(s.sandboxId, 'it has no id')
  is(await s.isRunning(), true, 'isRunning')
  is((await s.commands.run('echo hi')).stdout, 'hi\n', 'stdout')
})

test('create_env', async () => {
  const s = await box({ envs: { COLOUR: 'blue green' } })
  is((await s.commands.run('echo "$COLOUR"')).stdout, 'blue green\n', 'stdout')
})

test('create_metadata', async () => {
  const metadata = { purpose: 'a=b & c', who: `ada ${Date.now()}` }
  const s = await box({ metadata })
  const got = (await s.getInfo()).metadata
  is([got.purpose, got.who], [metadata.purpose, metadata.who], 'metadata')
  const found = await Sandbox.list({ query: { metadata } }).nextItems()
  is(found.map((i) => i.sandboxId), [s.sandboxId], 'list by metadata')
})

test('create_mcp', async () => {
  await unsupported(box({ mcp: {} }), /mcp/i)
})

test('connect', async () => {
  const s = await box()
  await s.files.write('a.txt', 'one')
  const again = await Sandbox.connect(s.sandboxId)
  is(again.sandboxId, s.sandboxId, 'id')
  is(await again.files.read('a.txt'), 'one', 'file')
})

test('connect_extends', async () => {
  const s = await box({ timeoutMs: 300_000 })
  const before = (await s.getInfo()).endAt
  await Sandbox.connect(s.sandboxId, { timeoutMs: 60_000 })
  is((await s.getInfo()).endAt.getTime() >= before.getTime(), true, 'endAt is no sooner')
  await Sandbox.connect(s.sandboxId, { timeoutMs: 900_000 })
  ok((await s.getInfo()).endAt.getTime() > before.getTime() + 500_000, 'endAt is not later')
})

test('list', async () => {
  const s = await box()
  const pages = Sandbox.list()
  const ids = []
  while (pages.hasNext) ids.push(...(await pages.nextItems()).map((i) => i.sandboxId))
  ok(ids.includes(s.sandboxId), `${s.sandboxId} is not in ${show(ids)}`)
})

test('list_pages', async () => {
  const metadata = { pages: `p${Date.now()}` }
  const made = []
  for (let i = 0; i < 3; i++) made.unshift((await box({ metadata })).sandboxId)
  const pages = Sandbox.list({ query: { metadata }, limit: 2 })
  const first = await pages.nextItems()
  is(first.length, 2, 'the first page')
  is(pages.hasNext, true, 'hasNext')
  const all = [...first, ...(await pages.nextItems())].map((i) => i.sandboxId)
  is(all, made, 'newest first')
  is(pages.hasNext, false, 'hasNext at the end')
})

test('list_state', async () => {
  const metadata = { state: `s${Date.now()}` }
  const s = await box({ metadata })
  is((await Sandbox.list({ query: { metadata, state: ['running'] } }).nextItems()).map((i) => i.sandboxId), [s.sandboxId], 'running')
  is(await Sandbox.list({ query: { metadata, state: ['paused'] } }).nextItems(), [], 'paused')
})

test('kill', async () => {
  const s = await box()
  await s.kill()
  is(await s.isRunning(), false, 'isRunning')
})

test('kill_twice', async () => {
  const s = await box()
  is(await Sandbox.kill(s.sandboxId), true, 'the first')
  is(await Sandbox.kill(s.sandboxId), false, 'the second')
})

test('set_timeout', async () => {
  const s = await box()
  await s.setTimeout(900_000)
  const far = (await s.getInfo()).endAt.getTime() - Date.now()
  ok(far > 800_000 && far <= 905_000, `it ends in ${far} ms`)
  await s.setTimeout(30_000)
  const near = (await s.getInfo()).endAt.getTime() - Date.now()
  ok(near <= 35_000, `it ends in ${near} ms`)
})

test('timeout_ends', async () => {
  const s = await box({ timeoutMs: 3_000 })
  const busy = await s.commands.run('sleep 100', { background: true, timeoutMs: 0 }).catch(() => {})
  busy?.wait().catch(() => {})
  await until('it ends though it is busy', async () => !(await s.isRunning()))
})

test('info', async () => {
  const s = await box()
  const i = await s.getInfo()
  is(i.sandboxId, s.sandboxId, 'id')
  is(i.state, 'running', 'state')
  ok(i.templateId && i.envdVersion, `no template or version: ${show(i)}`)
  ok(i.cpuCount >= 1 && i.memoryMB > 0, `no size: ${show(i)}`)
  ok(i.endAt > i.startedAt, `ends before it starts: ${show(i)}`)
})

test('metrics', async () => {
  const s = await box()
  let got = []
  await until('there is a sample', async () => (got = await s.getMetrics()).length > 0)
  ok(got[0].memTotal > 0 && got[0].cpuCount >= 1 && got[0].timestamp, `sample: ${show(got[0])}`)
})

test('network', async () => {
  absent(Sandbox.prototype.updateNetwork)
  const only = (name) => ({ allowOut: [name], denyOut: [ALL_TRAFFIC] })
  const s = await box({ network: only('one.example.com') })
  await s.updateNetwork(only('two.example.com'))
  is((await s.getInfo()).network.allowOut, ['two.example.com'], 'allowOut')
})

test('network_close', async () => {
  absent(Sandbox.prototype.updateNetwork)
  const s = await box({ allowInternetAccess: true })
  await unsupported(s.updateNetwork({ allowInternetAccess: false }), /keeps it/)
})

test('network_none', async () => {
  const s = await box({ allowInternetAccess: false })
  const got = await s.commands.run('curl -sS --max-time 5 http://192.0.2.1/ >/dev/null 2>&1 && echo reached || echo cut')
  is(got.stdout, 'cut\n', 'stdout')
})

test('wrong_key', async () => {
  const apiKey = `e2b_${'0'.repeat(40)}`
  await fails(Sandbox.create({ apiKey }), 'AuthenticationError')
})

test('other_tenant', async () => {
  const s = await box()
  await fails(Sandbox.connect(s.sandboxId, { apiKey: otherKey }), 'NotFoundError')
  is(await Sandbox.kill(s.sandboxId, { apiKey: otherKey }), false, 'kill')
  is(await s.isRunning(), true, 'isRunning')
})

test('unknown_sandbox', async () => {
  await fails(Sandbox.connect('01aaaaaaaaaaaaaaaaaaaaaaaa'), 'NotFoundError')
})
