/** Several at once, numbers, background tasks, and errors that can be told apart. */
import { CodeExecutionError, MicrosandboxWrapper, MicrosandboxWrapperError, ResourceLimitError, SandboxFlavor, SessionNotFoundError, WrapperConfig } from "cove-sandbox";

const config = WrapperConfig.fromEnv();
config.maxConcurrentSessions = 4;
config.defaultFlavor = SandboxFlavor.SMALL;
await using wrapper = await new MicrosandboxWrapper(config).start();

const results = await Promise.all([
  wrapper.executeCode("print('task 1')", { template: "python" }),
  wrapper.executeCode("console.log('task 2')", { template: "node" }),
  wrapper.executeCode("print('task 3')", { template: "python" }),
]);
results.forEach((result, i) => console.log(`${i + 1}: ${result.stdout.trim()}`));

const stats = await wrapper.getResourceStats();
console.log("active sessions within bounds:", stats.activeSessions >= 3 && stats.activeSessions <= stats.maxSessions);

await wrapper.pauseBackgroundTasks();
console.log("tasks:", (await wrapper.getBackgroundTaskStatus()).overallStatus);
await wrapper.resumeBackgroundTasks();
console.log("tasks:", (await wrapper.getBackgroundTaskStatus()).overallStatus);
console.log("orphans removed:", await wrapper.cleanupOrphanSandboxes());

async function attempt(code: string, sessionId?: string): Promise<void> {
  try {
    (await wrapper.executeCode(code, sessionId === undefined ? {} : { sessionId })).check();
  } catch (err) {
    if (err instanceof ResourceLimitError) console.log("a limit was reached");
    else if (err instanceof CodeExecutionError) console.log("the code failed:", err.message);
    else if (err instanceof SessionNotFoundError) console.log("there is no such session");
    else if (err instanceof MicrosandboxWrapperError) console.log("something else:", err.message);
    else throw err;
  }
}

await attempt("potentially_failing_code()");
await attempt("1");
await attempt("1", "06gy6bv8t0vj7na7kcyvgvv1rw");
