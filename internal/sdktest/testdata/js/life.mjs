import { Sandbox } from 'e2b'
import { absent, box, is, keep, ok, show, test, until } from './suite.mjs'

const pause = (s) => (s.pause ? s.pause() : s.betaPause())
const paused = (s) => async () => (await Sandbox.getInfo(s.sandboxId)).state === 'paused'

test('pause', async () => {
  const s = await box()
  is(await pause(s), true, 'the first')
  is((await s.getInfo()).state, 'paused', 'state')
  is(await pause(s), false, 'the second')
})

test('resume', async () => {
  const s = await box()
  await s.files.write('kept.txt', 'kept')
  const h = await s.commands.run('i=0; while true; do i=$((i+1)); echo $i > count; sleep 0.05; done', { background: true, timeoutMs: 0 })
  h.wait().catch(() => {})
  const count = async (of) => Number(await of.files.read('count').catch(() => 0))
  await until('it counts', async () => (await count(s)) > 2)
  await pause(s)
  const again = await Sandbox.connect(s.sandboxId)
  is(await again.files.read('kept.txt'), 'kept', 'file')
  const first = await count(again)
  ok(first > 1, `the count began again: ${first}`)
  await until('it goes on counting', async () => (await count(again)) > first)
})

test('pause_files_only', async () => {
  absent(Sandbox.prototype.createSnapshot) // of the same time as keepMemory
  const s = await box()
  await s.files.write('kept.txt', 'kept')
  is(await s.pause({ keepMemory: false }), true, 'pause')
  const again = await Sandbox.connect(s.sandboxId)
  is(await again.files.read('kept.txt'), 'kept', 'file')
})

test('auto_pause', async () => {
  const old = !Sandbox.prototype.createSnapshot
  const s = old ? await Sandbox.betaCreate({ autoPause: true }) : await Sandbox.create({ lifecycle: { onTimeout: 'pause' } })
  keep(s.sandboxId)
  await s.files.write('kept.txt', 'kept')
  await s.setTimeout(1_000)
  await until('it is paused at its end', paused(s))
  const again = await Sandbox.connect(s.sandboxId, { timeoutMs: 60_000 })
  is(await again.files.read('kept.txt'), 'kept', 'file')
})

test('auto_resume', async () => {
  absent(Sandbox.prototype.createSnapshot)
  const s = await box({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  await s.files.write('kept.txt', 'kept')
  await s.setTimeout(1_000)
  await until('it is paused at its end', paused(s))
  is((await s.commands.run('cat kept.txt')).stdout, 'kept', 'stdout')
})

test('fork', async () => {
  absent(Sandbox.prototype.fork)
  const s = await box()
  await s.files.write('a.txt', 'before')
  const forks = await s.fork({ count: 2 })
  is(forks.length, 2, 'how many')
  for (const f of forks) {
    if (f instanceof Error) throw f
    keep(f.sandboxId)
  }
  ok(new Set([s.sandboxId, ...forks.map((f) => f.sandboxId)]).size === 3, `the same sandbox twice: ${show(forks.map((f) => f.sandboxId))}`)
  await s.files.write('a.txt', 'after')
  for (const f of forks) is(await f.files.read('a.txt'), 'before', 'file of a fork')
})

test('snapshot', async () => {
  absent(Sandbox.prototype.createSnapshot)
  const s = await box()
  await s.files.write('a.txt', 'saved')
  const { snapshotId } = await s.createSnapshot()
  await s.files.write('a.txt', 'changed')
  const from = await box({ template: snapshotId })
  is(await from.files.read('a.txt'), 'saved', 'file')
  is(await Sandbox.deleteSnapshot(snapshotId), true, 'delete')
})

test('snapshot_list', async () => {
  absent(Sandbox.listSnapshots)
  const s = await box()
  const ids = [(await s.createSnapshot()).snapshotId, (await s.createSnapshot()).snapshotId].sort()
  const pages = s.listSnapshots({ limit: 1 })
  const got = []
  while (pages.hasNext) got.push(...(await pages.nextItems()).map((i) => i.snapshotId))
  is(got.sort(), ids, 'snapshots')
  for (const id of ids) await Sandbox.deleteSnapshot(id)
})

test('snapshot_delete', async () => {
  absent(Sandbox.deleteSnapshot)
  const s = await box()
  const { snapshotId } = await s.createSnapshot()
  is(await Sandbox.deleteSnapshot(snapshotId), true, 'the first')
  is(await Sandbox.deleteSnapshot(snapshotId), false, 'the second')
})
