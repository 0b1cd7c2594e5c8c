import * as e2b from 'e2b'
import { absent, box, fails, is, ok, show, skip, test, unsupported } from './suite.mjs'

const { Secret, Template, Volume } = e2b
const name = (kind) => `${kind}-${Date.now().toString(36)}`

test('template_exists', async () => {
  absent(Template.exists)
  is([await Template.exists('base'), await Template.exists('no-such-template')], [true, false], 'exists')
  is(await Template.aliasExists('base'), true, 'aliasExists')
})

test('template_tags', async () => {
  absent(Template.getTags)
  skip(process.env.CASES_DOCKER, 'there is no Docker')
  const alias = name('tagged')
  await Template.build(Template().fromBaseImage().runCmd('true'), { alias })
  const tag = name('tag')
  const info = await Template.assignTags(alias, tag)
  ok(info.tags.includes(tag), `assigned ${show(info)}`)
  ok((await Template.getTags(alias)).some((t) => t.tag === tag), 'it is not listed')
  await Template.removeTags(alias, tag)
  ok(!(await Template.getTags(alias)).some((t) => t.tag === tag), 'it is still listed')
})

test('template_build', async () => {
  skip(process.env.CASES_DOCKER, 'there is no Docker')
  const alias = name('built')
  const template = Template().fromBaseImage().setEnvs({ BUILT: 'yes' }).runCmd('echo made > /made')
  await Template.build(template, { alias })
  const s = await box({ template: alias })
  is((await s.commands.run('cat /made')).stdout, 'made\n', 'stdout')
})

test('volume', async () => {
  absent(Volume)
  const v = await Volume.create(name('vol'))
  try {
    await v.writeFile('/a.txt', 'shared')
    is(await v.readFile('/a.txt'), 'shared', 'content')
    const [one, two] = [await box({ volumeMounts: { '/mnt/v': v } }), await box({ volumeMounts: { '/mnt/v': v } })]
    await one.commands.run('echo more >> /mnt/v/b.txt')
    is((await two.commands.run('cat /mnt/v/a.txt /mnt/v/b.txt')).stdout, 'sharedmore\n', 'stdout')
    ok((await Volume.list()).some((i) => i.volumeId === v.volumeId), 'it is not listed')
    for (const s of [one, two]) await s.kill()
  } finally {
    is(await Volume.destroy(v.volumeId), true, 'destroy')
  }
})

test('volume_files', async () => {
  absent(Volume)
  const made = await Volume.create(name('vol'))
  try {
    const v = await Volume.connect(made.volumeId)
    is((await Volume.getInfo(made.volumeId)).name, made.name, 'name')
    await v.makeDir('/deep/er', { force: true, mode: 0o750 })
    is((await v.getInfo('/deep/er')).mode, 0o750, 'mode of a folder')
    const bytes = new Uint8Array([0, 255, 10, 13])
    const wrote = await v.writeFile('/deep/er/b.bin', bytes.buffer, { mode: 0o600 })
    is([wrote.path, wrote.type, wrote.size, wrote.mode], ['/deep/er/b.bin', 'file', 4, 0o600], 'what was written')
    is([...(await v.readFile('/deep/er/b.bin', { format: 'bytes' }))], [...bytes], 'bytes')
    is((await v.list('/', { depth: 3 })).map((e) => e.path), ['/deep', '/deep/er', '/deep/er/b.bin'], 'list')
    is((await v.updateMetadata('/deep/er/b.bin', { mode: 0o640 })).mode, 0o640, 'mode')
    await v.remove('/deep')
    is(await v.exists('/deep'), false, 'exists')
    await fails(v.readFile('/none'), 'VolumePathNotFoundError')
    await fails(Volume.create(made.name), 'VolumeError')
  } finally {
    is(await Volume.destroy(made.volumeId), true, 'destroy')
  }
  is(await Volume.destroy(made.volumeId), false, 'destroy again')
})

test('secret', async () => {
  absent(Secret)
  ok(Array.isArray(await Secret.list().nextItems()), 'there is no list')
  is(await Secret.exists('no-such-secret'), false, 'exists')
})

test('secret_write', async () => {
  absent(Secret)
  await unsupported(Secret.create('KEY', 'value'), /settings/)
})

test('git', async () => {
  const s = await box()
  absent(s.git)
  await s.git.init('repo', { initialBranch: 'main' })
  await s.files.write('repo/a.txt', 'x')
  await s.git.add('repo')
  await s.git.commit('repo', 'first', { authorName: 'Ada', authorEmail: 'ada@example.com' })
  const status = await s.git.status('repo')
  is([status.currentBranch, status.isClean], ['main', true], 'status')
})
