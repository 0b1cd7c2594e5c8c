/**
 * Errors by what went wrong, in the words of somebody who runs code: each is a target
 * for instanceof across codes, so that code that ran out of time is a TimeoutError and
 * a CodeExecutionError alike. Nobody makes one of them.
 */
import { CoveError, ExhaustedError } from "./errors.js";

/** MicrosandboxWrapperError is any error of this package. */
export { CoveError as MicrosandboxWrapperError };

/** ResourceLimitError: a quota, the machine, or a program's own bound on memory or output. */
export { ExhaustedError as ResourceLimitError };

/** CodeExecutionError: code failed, and somebody wanted an error of it; details.result is how. */
export abstract class CodeExecutionError extends CoveError {
  static override [Symbol.hasInstance](err: unknown): err is CodeExecutionError {
    return has(err, "code_failed");
  }
}

/** CommandExecutionError: a program failed, and somebody wanted an error of it; details.result is how. */
export abstract class CommandExecutionError extends CoveError {
  static override [Symbol.hasInstance](err: unknown): err is CommandExecutionError {
    return has(err, "command_failed");
  }
}

/** ConfigurationError: a setting does not fit, here or on the server. */
export abstract class ConfigurationError extends CoveError {
  static override [Symbol.hasInstance](err: unknown): err is ConfigurationError {
    return has(err, "configuration");
  }
}

/** SandboxCreationError: no sandbox could be made, for no fault of the request. */
export abstract class SandboxCreationError extends CoveError {
  static override [Symbol.hasInstance](err: unknown): err is SandboxCreationError {
    return has(err, "sandbox_creation", "limit");
  }
}

function has(err: unknown, ...reasons: string[]): boolean {
  return err instanceof CoveError && err.reason !== undefined && reasons.includes(err.reason);
}
