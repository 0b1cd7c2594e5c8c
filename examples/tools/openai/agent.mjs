// An agent with a shell in a sandbox. OPENAI_API_KEY is read by the SDK, COVE_URL and
// COVE_API_KEY by ours.
import OpenAI from 'openai'
import { Sandbox } from 'cove-sandbox'
import { shell, shellOutput } from 'cove-sandbox/openai'

const client = new OpenAI()
const model = process.env.MODEL ?? 'gpt-5.1'
const sandbox = await Sandbox.create()
try {
  let response = await client.responses.create({
    model,
    tools: [shell],
    input: process.argv[2] ?? 'Which kernel does this machine have?',
  })
  for (let turn = 0; turn < 10; turn++) {
    const calls = response.output.filter((item) => item.type === 'shell_call')
    if (calls.length === 0) break
    const input = []
    for (const call of calls) input.push(await shellOutput(sandbox, call, { timeoutMs: 60_000 }))
    response = await client.responses.create({ model, tools: [shell], previous_response_id: response.id, input })
  }
  console.log(response.output_text)
} finally {
  await sandbox.kill()
}
