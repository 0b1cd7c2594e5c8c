/** Code says who must act on an error. It is the server's own word. */
export type Code =
  | "invalid"
  | "unauthenticated"
  | "denied"
  | "not_found"
  | "conflict"
  | "exhausted"
  | "unsupported"
  | "unavailable"
  | "timeout"
  | "canceled"
  | "internal";

/** Fault is what is known about an error beside its sentence. */
export interface Fault {
  /** A finer word under the code, such as session_expired. */
  reason?: string | undefined;
  /** What to do about it. */
  remedy?: string | undefined;
  /** What else the server says, for programs. */
  details?: Record<string, unknown> | undefined;
  /** What was being done, such as session.open. */
  op?: string | undefined;
  /** Under which the server's log has more. */
  requestId?: string | undefined;
  /** Seconds after which to try again, where the server said so. */
  retryAfter?: number | undefined;
  cause?: unknown;
}

/**
 * CoveError is the only error that this package throws for what the platform, the
 * connection or the caller's own signal did. A program that fails is none: it is an
 * Execution with an outcome and an exit code.
 */
export abstract class CoveError extends Error {
  abstract readonly code: Code;
  readonly reason: string | undefined;
  readonly remedy: string | undefined;
  readonly details: Record<string, unknown>;
  readonly op: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  /** The sentence alone; message also has the remedy. */
  readonly sentence: string;

  constructor(sentence: string, fault: Fault = {}) {
    super(fault.remedy ? `${sentence}; ${fault.remedy}` : sentence, { cause: fault.cause });
    this.name = new.target.name;
    this.sentence = sentence;
    this.reason = fault.reason;
    this.remedy = fault.remedy;
    this.details = fault.details ?? {};
    this.op = fault.op;
    this.requestId = fault.requestId;
    this.retryAfter = fault.retryAfter;
  }
}

/** InvalidError: the request is malformed. Fix it. */
export class InvalidError extends CoveError {
  readonly code = "invalid" as const;
}

/** UnauthenticatedError: there is no key, or it is not a valid one. */
export class UnauthenticatedError extends CoveError {
  readonly code = "unauthenticated" as const;
}

/** DeniedError: policy, or what the key may do, says no. */
export class DeniedError extends CoveError {
  readonly code = "denied" as const;
}

/** NotFoundError: there is no such thing, or it is not yours. */
export class NotFoundError extends CoveError {
  readonly code = "not_found" as const;
}

/** SessionNotFoundError: there is no such sandbox, or not any more. */
export class SessionNotFoundError extends NotFoundError {}

/** ConflictError: the thing is in another state. */
export class ConflictError extends CoveError {
  readonly code = "conflict" as const;
}

/** ExhaustedError: a quota, the machine or the workspace is full. Later, or less. */
export class ExhaustedError extends CoveError {
  readonly code = "exhausted" as const;
}

/** UnsupportedError: this provider cannot enforce or do that. */
export class UnsupportedError extends CoveError {
  readonly code = "unsupported" as const;
}

/** UnavailableError: the server, or something that it needs, is down. */
export class UnavailableError extends CoveError {
  readonly code = "unavailable" as const;
}

/** ConnectionError: no server answered, or the connection broke off, or it was not Cove that answered. */
export class ConnectionError extends UnavailableError {}

/** VersionError: the server is of a version that this package was not made for, and such a one is to be refused. */
export class VersionError extends ConnectionError {}

/** TimeoutError: the time for it is over. */
export class TimeoutError extends CoveError {
  readonly code = "timeout" as const;
}

/** CanceledError: the caller's AbortSignal ended it; its cause is the signal's reason. */
export class CanceledError extends CoveError {
  readonly code = "canceled" as const;
}

/** InternalError: a fault of the server's own. */
export class InternalError extends CoveError {
  readonly code = "internal" as const;
}

type Constructor = new (sentence: string, fault?: Fault) => CoveError;

const classes: Record<Code, Constructor> = {
  invalid: InvalidError,
  unauthenticated: UnauthenticatedError,
  denied: DeniedError,
  not_found: NotFoundError,
  conflict: ConflictError,
  exhausted: ExhaustedError,
  unsupported: UnsupportedError,
  unavailable: UnavailableError,
  timeout: TimeoutError,
  canceled: CanceledError,
  internal: InternalError,
};

/** Reasons whose errors have a class of their own below that of the code. */
const finer: Record<string, Constructor> = {
  no_such_session: SessionNotFoundError,
  session_expired: SessionNotFoundError,
  session_closed: SessionNotFoundError,
  node_lost: SessionNotFoundError,
  volume_overrun: SessionNotFoundError,
  kernel_memory: SessionNotFoundError,
};

/**
 * problem is the error in an answer of the server, or undefined for what Cove does
 * not answer. Where the versions do not fit, unlike says so: it may be why the server
 * does not know something.
 */
export function problem(answer: unknown, { retryAfter, unlike }: { retryAfter?: number | undefined; unlike?: string | undefined } = {}): CoveError | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const p = answer as Record<string, unknown>;
  const text = (name: string) => (typeof p[name] === "string" ? (p[name] as string) : undefined);
  const code = text("code");
  if (code === undefined || !Object.hasOwn(classes, code)) return undefined;
  const reason = text("reason");
  const Class =
    reason !== undefined && code === "not_found" && Object.hasOwn(finer, reason) ? finer[reason]! : classes[code as Code];
  const details = typeof p["details"] === "object" && p["details"] !== null ? (p["details"] as Record<string, unknown>) : {};
  const remedies = [text("remedy"), code === "invalid" || code === "not_found" ? unlike : undefined].filter(Boolean);
  return new Class(text("error") ?? code, {
    reason, remedy: remedies.length > 0 ? remedies.join("; ") : undefined, details, op: text("op"), requestId: text("request_id"), retryAfter,
  });
}

/** aborted is the error of a call whose signal has ended. */
export function aborted(signal: AbortSignal): CoveError {
  const reason: unknown = signal.reason;
  if (reason instanceof CoveError) return reason;
  if (reason instanceof Error && reason.name === "TimeoutError") {
    return new TimeoutError("the deadline passed", { cause: reason });
  }
  return new CanceledError("the call was aborted", { cause: reason });
}

/** invalid is the error for one bad argument. */
export function invalid(field: string, wrong: string): InvalidError {
  return new InvalidError(`${field}: ${wrong}`, { details: { field } });
}

/** misfit is the error for a setting that does not fit. */
export function misfit(field: string, wrong: string): InvalidError {
  return new InvalidError(`${field}: ${wrong}`, { reason: "configuration", details: { field } });
}
