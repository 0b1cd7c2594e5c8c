// An agent with a shell in a sandbox. ANTHROPIC_API_KEY is read by the SDK, COVE_URL and
// COVE_API_KEY by ours.
import Anthropic from '@anthropic-ai/sdk'
import { Sandbox } from 'cove-sandbox'
import { bashTool } from 'cove-sandbox/anthropic'

const sandbox = await Sandbox.create()
try {
  const answer = await new Anthropic().beta.messages.toolRunner({
    model: process.env.MODEL ?? 'claude-sonnet-4-5',
    max_tokens: 1024,
    max_iterations: 10,
    tools: [bashTool(sandbox, { timeoutMs: 30_000 })],
    messages: [{ role: 'user', content: process.argv[2] ?? 'Which kernel does this machine have?' }],
  })
  for (const block of answer.content) if (block.type === 'text') console.log(block.text)
} finally {
  await sandbox.kill()
}
