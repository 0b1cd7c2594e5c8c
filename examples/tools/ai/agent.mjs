// An agent of Vercel's AI SDK with a shell, Python and files in a sandbox. MODEL_URL,
// MODEL and MODEL_KEY name any model that speaks chat/completions; COVE_URL and
// COVE_API_KEY are read by our SDK.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, stepCountIs } from 'ai'
import { Sandbox } from 'cove-sandbox'
import { coveTools } from 'cove-sandbox/ai'

const { MODEL_URL: baseURL = 'http://127.0.0.1:11434/v1', MODEL_KEY: apiKey, MODEL = 'llama3.3' } = process.env
const provider = createOpenAICompatible({ name: 'mine', baseURL, apiKey })
const sandbox = await Sandbox.create()
try {
  const { text } = await generateText({
    model: provider(MODEL),
    tools: coveTools(sandbox, { timeoutMs: 30_000 }),
    stopWhen: stepCountIs(10),
    prompt: process.argv[2] ?? 'Which kernel does this machine have?',
  })
  console.log(text)
} finally {
  await sandbox.kill()
}
