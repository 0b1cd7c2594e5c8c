// What the cases share: each is a function that throws where an SDK does not do what
// its users expect. Nothing here knows Cove.
import { Sandbox } from 'e2b'

export const mode = process.env.CASES_MODE // url or domain
export const otherKey = process.env.CASES_OTHER_KEY // of another tenant

const cases = []

export function test(name, run) {
  cases.push({ name, run })
}

class Absent extends Error {}
class Skipped extends Error {}
class Unsupported extends Error {}

// absent ends a case where this version of the SDK has no such call.
export function absent(unless) {
  if (!unless) throw new Absent('the SDK has no such call')
}

// skip ends a case that cannot be tried here.
export function skip(unless, why) {
  if (!unless) throw new Skipped(why)
}

// unsupported ends a case as what the server refuses, if it does so in these words.
export async function unsupported(what, words) {
  let got
  try {
    got = await what
  } catch (err) {
    if (words.test(String(err.message))) throw new Unsupported(err.message)
    throw err
  }
  throw new Error(`is said not to be supported, and gave ${show(got)}`)
}

export function is(got, want, what = 'it') {
  if (show(got) !== show(want)) throw new Error(`${what} is ${show(got)}, not ${show(want)}`)
}

export function ok(got, what) {
  if (!got) throw new Error(what)
}

// fails wants an error of a class, by its name or that of a class above it.
export async function fails(what, name) {
  let got
  try {
    got = await what
  } catch (err) {
    for (let at = err; at; at = Object.getPrototypeOf(at)) {
      if (at.constructor?.name === name || at.name === name) return err
    }
    throw new Error(`fails with ${err.constructor.name}: ${err.message}, not with ${name}`)
  }
  throw new Error(`gave ${show(got)} instead of ${name}`)
}

// until asks again until the answer is true. Only its bound is a time.
export async function until(what, ask, seconds = 60) {
  const end = Date.now() + seconds * 1000
  for (let last; ; await new Promise((done) => setTimeout(done, 50))) {
    try {
      if (await ask()) return
    } catch (err) {
      last = err
    }
    if (Date.now() > end) throw new Error(`${what}: never${last ? `, the last time for ${last.message}` : ''}`)
  }
}

export function show(value) {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text
}

// A case makes its sandboxes here, so that none is left.
let made = []

export async function box(opts = {}, of = Sandbox) {
  const { template, ...rest } = opts
  const s = template ? await of.create(template, rest) : await of.create(rest)
  made.push(s.sandboxId)
  return s
}

export function keep(id) {
  made.push(id)
}

async function one({ name, run }) {
  const line = { case: name, status: 'pass', why: '' }
  try {
    await run()
  } catch (err) {
    const status = { Absent: 'absent', Skipped: 'skip', Unsupported: 'unsupported' }[err.constructor.name] ?? 'fail'
    Object.assign(line, { status, why: status === 'fail' ? `${err.constructor.name}: ${err.message}\n${err.stack}` : err.message })
  }
  for (const id of made) await Sandbox.kill(id).catch(() => {})
  made = []
  return line
}

export async function runAll(only) {
  for (const c of cases) {
    if (only && !only.split(',').includes(c.name)) continue
    console.log(JSON.stringify(await one(c)))
  }
}
