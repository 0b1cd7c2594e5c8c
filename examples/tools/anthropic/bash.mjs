// Anthropic's bash tool, run in a sandbox of Cove: hand it to client.beta.messages.toolRunner,
// or call run yourself with the input of a tool_use block.

export function bashTool(sandbox, { timeout } = {}) {
  return {
    type: 'bash_20250124',
    name: 'bash',
    parse: (input) => input,
    async run({ command, restart }, context) {
      if (restart) {
        await sandbox.restart()
        return 'The shell was started again. Files are still there.'
      }
      return told(await sandbox.bash(command, { timeout, signal: context?.signal }))
    },
  }
}

// told is what the model reads: both streams, and how it ended where that matters.
function told({ stdout = '', stderr = '', exit_code: code, outcome, truncated, refusal }) {
  const parts = [stdout, stderr]
  if (outcome === 'timed_out') parts.push('[the time ran out]')
  else if (outcome === 'blocked') parts.push(`[blocked by policy: ${refusal?.reason ?? 'it is not allowed'}]`)
  else if (code) parts.push(`[exit code ${code}]`)
  if (truncated) parts.push('[output was cut]')
  return parts.map((p) => p.replace(/\n$/, '')).filter(Boolean).join('\n') || '(no output)'
}
