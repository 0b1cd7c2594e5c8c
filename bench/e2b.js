// Does what bench asks for, one line of JSON at a time, with E2B's own client as
// it is published, and answers each with a line.
'use strict'
const { Sandbox } = require('e2b')

let box

const asked = {
  async open() {
    box = await Sandbox.create({ timeoutMs: 600_000 })
    return { id: box.sandboxId }
  },
  // Runs `true` so often, and says how long each took.
  async run({ times }) {
    const took = []
    for (let i = 0; i < times; i++) {
      const began = process.hrtime.bigint()
      await box.commands.run('true')
      took.push(Number(process.hrtime.bigint() - began))
    }
    return { took }
  },
  // Runs short commands in a row, and says how many did not come to their end.
  async row({ times }) {
    let lost = 0
    let why = ''
    for (let i = 0; i < times; i++) {
      try {
        const done = await box.commands.run('echo ' + i)
        if (done.stdout !== i + '\n') throw new Error('it wrote ' + done.stdout)
      } catch (e) {
        lost++
        why = String(e)
      }
    }
    return { lost, why }
  },
  // Makes files in a directory that is watched, and says of how many no word came.
  async watch({ times }) {
    await box.files.makeDir('watched')
    const seen = new Set()
    let all
    const done = new Promise((resolve) => { all = resolve })
    let quiet
    const wait = () => {
      clearTimeout(quiet)
      quiet = setTimeout(all, 20_000)
    }
    wait()
    const handle = await box.files.watchDir('watched', (e) => {
      if (e.type !== 'create') return
      seen.add(e.name)
      wait()
      if (seen.size === times) all()
    }, { timeoutMs: 0 })
    await box.commands.run(`cd watched && for ((i = 0; i < ${times}; i++)); do : >f$i; done`, { timeoutMs: 0 })
    await done
    clearTimeout(quiet)
    await handle.stop()
    return { lost: times - seen.size }
  },
  async close() {
    await box.kill()
    return {}
  },
}

async function main() {
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    const { call, ...args } = JSON.parse(line)
    let answer
    try {
      answer = await asked[call](args)
    } catch (e) {
      answer = { error: String(e) }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
}

main().then(() => process.exit(0))
