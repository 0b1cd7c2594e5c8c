import { Sandbox } from 'e2b'
import { absent, box, fails, is, ok, show, test, unsupported, until } from './suite.mjs'

const newer = () => absent(Sandbox.prototype.createSnapshot) // options that came since
const bytes = (n) => Uint8Array.from({ length: n }, (_, i) => (i * 7) % 256)
const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i])

test('read', async () => {
  const s = await box()
  await s.files.write('a.txt', 'tëxt\n')
  is(await s.files.read('a.txt'), 'tëxt\n', 'text')
  is(await s.files.read('/home/user/a.txt'), 'tëxt\n', 'by its whole name')
  await s.files.write('empty', '')
  is(await s.files.read('empty'), '', 'an empty file')
  await fails(s.files.read('missing'), 'NotFoundError')
})

test('read_bytes', async () => {
  const s = await box()
  const data = bytes(100_000)
  await s.files.write('b', data.buffer)
  ok(same(await s.files.read('b', { format: 'bytes' }), data), 'other bytes')
  const blob = await s.files.read('b', { format: 'blob' })
  ok(same(new Uint8Array(await blob.arrayBuffer()), data), 'another blob')
})

test('read_stream', async () => {
  const s = await box()
  const data = bytes(300_000)
  await s.files.write('b', new Blob([data]))
  const parts = []
  for await (const part of await s.files.read('b', { format: 'stream' })) parts.push(part)
  ok(same(new Uint8Array(await new Blob(parts).arrayBuffer()), data), 'other bytes')
})

test('write', async () => {
  const s = await box()
  const info = await s.files.write('deep/er/a b+ü.txt', 'one')
  is([info.name, info.path], ['a b+ü.txt', '/home/user/deep/er/a b+ü.txt'], 'answer')
  await s.files.write('deep/er/a b+ü.txt', 'two')
  is((await s.commands.run('cat "deep/er/a b+ü.txt"')).stdout, 'two', 'content')
  is((await s.commands.run('cat "/home/user/deep/er/a b+ü.txt"')).stdout, 'two', 'content by its whole name')
  await s.files.write('stream', new Blob(['three']).stream())
  is(await s.files.read('stream'), 'three', 'content of a stream')
})

test('write_many', async () => {
  const s = await box()
  const infos = await s.files.write([
    { path: 'one.txt', data: '1' },
    { path: '/home/user/sub/two.txt', data: new Blob(['2']) },
    { path: '/tmp/thrëe.txt', data: new TextEncoder().encode('3').buffer },
  ])
  is(infos.map((i) => i.path), ['/home/user/one.txt', '/home/user/sub/two.txt', '/tmp/thrëe.txt'], 'answer')
  is((await s.commands.run('cat one.txt sub/two.txt /tmp/thrëe.txt')).stdout, '123', 'content')
})

test('write_octet', async () => {
  newer()
  const s = await box()
  const data = bytes(70_000)
  await s.files.write('b', new Blob([data]), { useOctetStream: true })
  ok(same(await s.files.read('b', { format: 'bytes' }), data), 'other bytes')
})

test('write_gzip', async () => {
  newer()
  const s = await box()
  const text = 'gzip '.repeat(20_000)
  await s.files.write('a.txt', text, { gzip: true })
  is((await s.commands.run('wc -c < a.txt')).stdout.trim(), String(text.length), 'size')
  is(await s.files.read('a.txt', { gzip: true }), text, 'text')
})

test('metadata', async () => {
  newer()
  const s = await box()
  await s.files.write('a.txt', 'x', { metadata: { author: 'ada', kind: 'note' } })
  is((await s.files.getInfo('a.txt')).metadata, { author: 'ada', kind: 'note' }, 'metadata')
})

test('list_dir', async () => {
  const s = await box()
  await s.commands.run('mkdir -p d/sub/deep && echo x > d/a && echo y > d/sub/b')
  const names = async (depth) => (await s.files.list('d', depth ? { depth } : undefined)).map((e) => `${e.type} ${e.path}`)
  is(await names(), ['file /home/user/d/a', 'dir /home/user/d/sub'], 'one level')
  is((await names(2)).length, 4, 'two levels')
  await fails(s.files.list('missing'), 'NotFoundError')
})

test('stat', async () => {
  const s = await box()
  await s.commands.run('echo hello > a; chmod 640 a')
  const i = await s.files.getInfo('a')
  is([i.name, i.type, i.path, i.size, i.permissions], ['a', 'file', '/home/user/a', 6, '-rw-r-----'], 'file')
  is(i.mode & 0o777, 0o640, 'mode')
  is([i.owner, i.group], ['user', 'user'], 'owner')
  ok(Math.abs(i.modifiedTime - Date.now()) < 3_600_000, `modified at ${show(i.modifiedTime)}`)
  is((await s.files.getInfo('.')).type, 'dir', 'folder')
})

test('symlink', async () => {
  const s = await box()
  await s.commands.run('echo x > target; ln -s target link')
  const i = await s.files.getInfo('link')
  is([i.name, i.symlinkTarget], ['link', '/home/user/target'], 'link')
  is(await s.files.read('link'), 'x\n', 'content')
})

test('exists', async () => {
  const s = await box()
  await s.files.write('a', '')
  is([await s.files.exists('a'), await s.files.exists('b'), await s.files.exists('/home/user')], [true, false, true], 'exists')
})

test('mkdir', async () => {
  const s = await box()
  is(await s.files.makeDir('d/e'), true, 'the first')
  is(await s.files.makeDir('d/e'), false, 'the second')
  is((await s.files.getInfo('d/e')).type, 'dir', 'type')
})

test('move', async () => {
  const s = await box()
  await s.files.write('a', 'x')
  is((await s.files.rename('a', 'd/b')).path, '/home/user/d/b', 'answer')
  is([await s.files.exists('a'), await s.files.read('d/b')], [false, 'x'], 'after')
  await fails(s.files.rename('missing', 'c'), 'NotFoundError')
})

test('remove', async () => {
  const s = await box()
  await s.files.write('d/e/a', 'x')
  await s.files.remove('d/e/a')
  await s.files.remove('d')
  is(await s.files.exists('d'), false, 'exists')
})

async function watched(opts, doing, wanted) {
  const s = await box()
  await s.commands.run('mkdir -p d/sub')
  const seen = []
  const h = await s.files.watchDir('d', (e) => void seen.push(`${e.type} ${e.name}`), { timeoutMs: 0, ...opts })
  await s.commands.run(doing)
  await until(`${show(wanted)} among ${show(seen)}`, async () => wanted.every((w) => seen.includes(w)))
  await h.stop()
  return seen
}

test('watch', async () => {
  const doing = 'echo x > d/a; echo x > d/sub/inner; mv d/a d/b; rm d/b; touch d/last'
  const seen = await watched({}, doing, ['create a', 'write a', 'create b', 'remove b', 'create last'])
  ok(!seen.some((e) => e.includes('inner')), `not recursive, and saw ${show(seen)}`)
})

test('watch_chmod', () => watched({}, 'touch d/a; chmod 600 d/a; chmod 700 d/sub', ['create a', 'chmod a', 'chmod sub']))

test('watch_rename', async () => {
  const seen = await watched({}, 'touch d/a; mv d/a d/b; mv d/sub d/other; touch d/last', ['rename a', 'create b', 'rename sub', 'create other', 'create last'])
  ok(!seen.some((e) => e.startsWith('remove')), `nothing was removed, and saw ${show(seen)}`)
})

test('watch_recursive', async () => {
  await watched({ recursive: true }, 'echo x > d/sub/inner; mkdir d/new; touch d/last', ['create sub/inner', 'write sub/inner', 'create new', 'create last'])
})

test('watch_many', async () => {
  const s = await box()
  await s.files.makeDir('d')
  const seen = new Set()
  const h = await s.files.watchDir('d', (e) => void (e.type === 'create' && seen.add(e.name)), { timeoutMs: 0 })
  await s.commands.run('for i in $(seq 2000); do : > d/$i; done')
  await until('all 2000 files', async () => seen.size === 2000)
  await h.stop()
})
