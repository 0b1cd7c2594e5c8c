/**
 * cove-sandbox runs code that nobody has read in Cove's sandboxes: on this machine, or
 * on a server. Sandbox is one of them; SandboxClient keeps one for each user and
 * conversation. The package talks to a server and holds no logic of its own: it must
 * not repeat what may have happened, nor show a key to anybody but its server.
 */
export type { Content } from "./body.js";
export { SandboxClient, type SessionOptions } from "./client.js";
export { Code, CodeResult, type CodeContext, type CodeEvent, type CodeFault, type CodeOptions, type Rich, type RunCodeOptions } from "./code.js";
export { Commands, type Command, type CommandEvent, type CommandOptions, type OutputPage, type RunOptions, type StartOptions } from "./commands.js";
export {
  CanceledError, ConflictError, ConnectionError, CoveError, DeniedError, ExhaustedError, InternalError, InvalidError, NotFoundError,
  SessionNotFoundError, TimeoutError, UnauthenticatedError, UnavailableError, UnsupportedError, VersionError, type Code as ErrorCode,
} from "./errors.js";
export {
  CodeExecutionError, CommandExecutionError, ConfigurationError, MicrosandboxWrapperError, ResourceLimitError, SandboxCreationError,
} from "./exceptions.js";
export { Execution, type Outcome, type Refusal } from "./execution.js";
export { Files, Watch, type Progress, type ReadOptions, type TransferOptions, type WriteOptions } from "./files.js";
export type { FileChange, FileInfo, Link, Network, ProcessInfo, SandboxInfo, SandboxSpec, Snapshot, Usage, Volume } from "./forms.js";
export type { OpenOptions } from "./handle.js";
export type { Node, NodeProvider } from "./nodes.js";
export type { CallOptions, ConnectionOptions, Mode, OnceOptions } from "./options.js";
export { Ports } from "./ports.js";
export { Process, type Chunk, type FollowOptions, type WaitOptions, type WindowSize } from "./process.js";
export { CodeSandbox, type ExecutionResult, type PythonOptions, type SandboxKind, getSandbox, runPythonCode } from "./python.js";
export { Sandbox, type CreateOptions, type ForkOptions, type PageOptions, type SandboxFilter } from "./sandbox.js";
export { Client, type Health, type Maintenance, type MaintenanceVerb, type ProviderShare, type PythonAnswer, type Stats, type Task } from "./server.js";
export { Terminals, type TerminalOptions } from "./terminals.js";
export { VERSION } from "./version.js";
export { MicrosandboxWrapper, SandboxFlavor, WrapperConfig, type ExecuteOptions, type WrapperSettings } from "./wrapper.js";
