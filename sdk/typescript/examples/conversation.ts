/**
 * A tool for the agent of a conversation: each command runs in the sandbox of its user
 * and thread, whose files stay from one command to the next.
 */
import { CoveError, SandboxClient } from "cove-sandbox";

const client = new SandboxClient();

async function bash(userId: string, threadId: string, command: string): Promise<string> {
  try {
    const session = await client.getOrCreateSession({ userId, threadId, policy: "agent-bash" });
    const x = await client.execute(session.id, command, { timeoutMs: 30_000 });
    const notes = x.recreated || session.created ? "(a new sandbox: it had no files yet)\n" : "";
    if (x.outcome === "blocked") return `${notes}not run: ${x.refusal?.reason}`;
    return `${notes}exit code ${x.exitCode}\n${x.stdout}${x.stderr}`;
  } catch (err) {
    if (err instanceof CoveError) return `${err.code}: ${err.message}`;
    throw err;
  }
}

console.log(await bash("ada", "one", "echo 'a,b' > data.csv; wc -l data.csv"));
console.log(await bash("ada", "one", "cat data.csv"));
console.log(await bash("ada", "one", "curl example.org"));
console.log(await bash("ada", "two", "ls"));
for (const threadId of ["one", "two"]) {
  const { id } = await client.getOrCreateSession({ userId: "ada", threadId, policy: "agent-bash" });
  await (await client.session(id)).kill();
}
await client.close();
