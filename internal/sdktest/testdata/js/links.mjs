import { Sandbox } from 'e2b'
import { absent, box, is, mode, ok, test, unsupported, until } from './suite.mjs'

const noHosts = 'host names of sandboxes are there in domain mode alone'
const form = (text) => {
  const body = new FormData()
  body.append('file', new Blob([text]))
  return { method: 'POST', body }
}
const changed = (url) => {
  const u = new URL(url)
  const sign = u.searchParams.get('signature')
  u.searchParams.set('signature', sign.slice(0, -2) + (sign.at(-2) === 'A' ? 'B' : 'A') + sign.at(-1))
  return u.href
}

test('upload_url', async () => {
  const s = await box()
  const url = await s.uploadUrl('up/a.txt', { useSignatureExpiration: 100 })
  is((await fetch(changed(url), form('bad'))).status, 401, 'a signature with one letter changed')
  is((await fetch(url, form('sent'))).status, 200, 'status')
  is(await s.files.read('up/a.txt'), 'sent', 'content')
})

test('download_url', async () => {
  const s = await box()
  await s.files.write('a.txt', 'kept')
  const url = await s.downloadUrl('a.txt')
  const got = await fetch(url)
  is([got.status, await got.text()], [200, 'kept'], 'answer')
  is((await fetch(changed(url))).status, 401, 'a signature with one letter changed')
  const other = new URL(url)
  other.searchParams.set('path', 'b.txt')
  is((await fetch(other)).status, 401, 'a signature for another path')
})

test('url_expired', async () => {
  const s = await box()
  await s.files.write('a.txt', 'kept')
  const url = await s.downloadUrl('a.txt', { useSignatureExpiration: 1 })
  await until('it expires', async () => (await fetch(url)).status === 401)
  is((await fetch(await s.downloadUrl('a.txt', { useSignatureExpiration: 100 }))).status, 200, 'one that has not')
})

async function serving(opts) {
  const s = await box(opts)
  await s.files.write('www/index.html', 'hello from inside')
  const h = await s.commands.run('cd www && exec python3 -m http.server 8080', { background: true, timeoutMs: 0 })
  h.wait().catch(() => {})
  return { s, url: `https://${s.getHost(8080)}/` }
}

test('host_port', async () => {
  if (mode !== 'domain') await unsupported(Promise.reject(new Error(noHosts)), /host names/)
  const { url } = await serving()
  await until('the program inside answers', async () => (await fetch(url)).status === 200)
  is(await (await fetch(url)).text(), 'hello from inside', 'text')
})

test('host_private', async () => {
  absent(Sandbox.prototype.createSnapshot) // of the same time as allowPublicTraffic
  if (mode !== 'domain') await unsupported(Promise.reject(new Error(noHosts)), /host names/)
  const { s, url } = await serving({ network: { allowPublicTraffic: false } })
  ok(s.trafficAccessToken, 'there is no token')
  const headers = { 'E2B-Traffic-Access-Token': s.trafficAccessToken }
  await until('the program inside answers', async () => (await fetch(url, { headers })).status === 200)
  const bare = (await fetch(url)).status
  ok(bare === 401 || bare === 403, `without the token: ${bare}`)
})
