// OpenAI's shell tool, run in a sandbox of Cove: a shell_call item in, the
// shell_call_output item that answers it out.

export const shell = { type: 'shell', environment: { type: 'local' } }

export async function shellOutput(sandbox, { call_id, action }) {
  const { commands, timeout_ms, max_output_length } = action
  const most = max_output_length ?? 20_000
  const output = []
  for (const command of commands) {
    const ran = await sandbox.execute(command, timeout_ms ? { timeout: timeout_ms / 1000 } : {})
    output.push({
      stdout: cut(ran.stdout ?? '', most),
      stderr: cut(ran.outcome === 'blocked' ? `blocked by policy: ${ran.refusal?.reason}` : (ran.stderr ?? ''), most),
      outcome: ran.outcome === 'timed_out' ? { type: 'timeout' } : { type: 'exit', exit_code: ran.exit_code },
    })
  }
  return { type: 'shell_call_output', call_id, max_output_length, output }
}

// cut keeps the head and the tail.
function cut(text, most) {
  if (text.length <= most) return text
  const gap = '\n[…]\n'
  const half = Math.floor((most - gap.length) / 2)
  return half < 1 ? text.slice(0, most) : text.slice(0, half) + gap + text.slice(-half)
}
