import { codes, type ErrorCode, type OncekeyError } from "../core/errors.ts";
import { StoreFailure } from "../core/store.ts";
import { UsageError } from "./command-line.ts";

/** What is told of a command that failed. */
export interface Failure {
  readonly exitCode: 1 | 2;
  /** Of docs/errors.md; `null` where none fits. */
  readonly code: ErrorCode | null;
  /** Where the server answered. */
  readonly sqlState: string | null;
  /** One line: what happened, what was kept, what to do next. */
  readonly message: string;
}

/** A command failed after part of its work was committed. `done` is a sentence that says what. */
export class PartlyDone extends Error {
  override readonly name = "PartlyDone";
  readonly done: string;

  constructor(done: string, cause: unknown) {
    super(done, { cause });
    this.done = done;
  }
}

/** The module of a worker cannot be used. `what` is a clause without its full stop. */
export class ModuleFailure extends Error {
  override readonly name = "ModuleFailure";

  constructor(what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
  }
}

interface KnownFailure {
  /** Matched against SQLSTATEs and the client's codes. */
  readonly codes: RegExp;
  /** Matched where the client gives no code. */
  readonly words?: RegExp;
  readonly code: ErrorCode | null;
  readonly what: string;
  readonly next: string;
  /** Whether the server's own words are added: what it refused stands only there. */
  readonly quoted?: true;
  /** Whether the last step may have taken effect nevertheless. */
  readonly unsure?: true;
  /** Whether it passes without anybody correcting the command: a peer that is away, or busy. */
  readonly passing?: true;
}

const unavailable = "idempotency_store_unavailable";

const KNOWN: readonly KnownFailure[] = [
  {
    codes: /^ECONNREFUSED$/,
    code: unavailable,
    what: "The connection to the database was refused: nothing listens at that host and port.",
    next: "Start the server, or correct the database URL.",
    passing: true,
  },
  {
    codes: /^(?:ENOTFOUND|EAI_AGAIN)$/,
    code: unavailable,
    what: "The database's host name cannot be resolved.",
    next: "Correct the database URL, or try again when the name service answers.",
    passing: true,
  },
  {
    codes: /^(?:ETIMEDOUT|CONNECT_TIMEOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN)$/,
    words: /timeout exceeded when trying to connect|due to connection timeout/i,
    code: unavailable,
    what: "The database did not answer the attempt to connect.",
    next: "Check host, port and firewall, and the database URL.",
    passing: true,
  },
  {
    codes: /^28/,
    code: unavailable,
    what: "The database refused the user or the password.",
    next: "Correct them in the database URL.",
  },
  {
    codes: /^3D000$/,
    code: unavailable,
    what: "The server has no database of that name.",
    next: "Create it, or correct the database URL.",
  },
  {
    codes: /^53/,
    code: unavailable,
    what: "The server has no connection, memory or disk space left for this command.",
    next: "Free some, then run the command again.",
    passing: true,
  },
  {
    codes: /^57P03$/,
    code: unavailable,
    what: "The server is starting up or shutting down.",
    next: "Run the command again in a moment.",
    passing: true,
  },
  {
    codes: /^(?:ECONN\w+|EPIPE|CONNECTION_\w+|08...|57P0[124])$/,
    words: /Connection terminated|was closed and is not queryable|connection error and is not queryable/i,
    code: unavailable,
    what: "The connection to the database was lost before the answer came; the last step may have taken effect.",
    next: "Run the command again: repeating it is safe.",
    unsure: true,
    passing: true,
  },
  {
    codes: /^(?:40001|40P01|55P03)$/,
    code: "idempotency_contention",
    what: "Concurrent transactions hold the same rows or locks.",
    next: "Run the command again.",
    passing: true,
  },
  {
    codes: /^(?:57014|25P0[34]|57P05)$/,
    code: unavailable,
    what: "The server cancelled the statement: it ran or waited for longer than the server's settings allow.",
    next: "Run the command again, with longer time limits for its role.",
  },
  {
    codes: /^25006$/,
    code: unavailable,
    what: "The connection leads to a server that only reads.",
    next: "Connect to the primary.",
  },
  {
    codes: /^42501$/,
    code: null,
    what: "The database role may not do this",
    next: "Connect as the owner of the schema, or grant the role what it lacks (oncekey migrate --grants).",
    quoted: true,
  },
  {
    codes: /^42704$/,
    code: null,
    what: "A role or another object that was named does not exist",
    next: "Create it, or correct the name, then run the command again.",
    quoted: true,
  },
];

/**
 * What to tell of an error that ended a command. Never contains one of the secrets: where the database client's own words
 * hold one, they are withheld as a whole.
 */
export function failureOf(error: unknown, secrets: readonly string[]): Failure {
  if (error instanceof UsageError) return { exitCode: 2, code: null, sqlState: null, message: error.message };
  if (isOncekeyError(error)) return { exitCode: 1, code: error.code, sqlState: null, message: error.message };
  if (error instanceof ModuleFailure) return moduleFailure(error, secrets);
  const done = error instanceof PartlyDone ? error.done : null;
  const origin = error instanceof PartlyDone ? error.cause : error;
  const chain = causes(origin);
  const known = KNOWN.find((row) => chain.some((cause) => matches(row, cause)));
  const words = withheld(serverWords(chain), secrets);
  const message = known === undefined ? unexpected(origin, words, done) : explained(known, words, done);
  return { exitCode: 1, code: known?.code ?? null, sqlState: sqlStateOf(origin), message };
}

/** Whether the failure may be over at the next try, with nothing corrected. */
export function isPassing(error: unknown): boolean {
  const chain = causes(error);
  if (KNOWN.some((row) => row.passing === true && chain.some((cause) => matches(row, cause)))) return true;
  // The store's own word for it, where its cause is none of the known ones.
  const { name, kind } = (error ?? {}) as { name?: unknown; kind?: unknown };
  return name === "StoreFailure" && kind === "unavailable" && !chain.some(isKnown);
}

function isKnown(cause: Cause): boolean {
  return KNOWN.some((row) => matches(row, cause));
}

/** By its form: a worker's module may bring a copy of the package of its own. */
function isOncekeyError(error: unknown): error is OncekeyError {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  return name === "OncekeyError" && typeof code === "string" && Object.hasOwn(codes, code);
}

function moduleFailure({ message, cause }: ModuleFailure, secrets: readonly string[]): Failure {
  const words = withheld(serverWords(causes(cause)), secrets);
  const name = cause instanceof Error ? cause.name : typeof cause;
  const details = cause === undefined ? "" : ` (${name}): ${words === "" ? "no details" : words}`;
  return {
    exitCode: 1,
    code: null,
    sqlState: null,
    message: `${message}${details}. Correct it, then start the worker again.`,
  };
}

interface Cause {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly severity?: unknown;
  readonly cause?: unknown;
}

/** Clients and ORMs bury the error that says why; no chain worth reading is longer. */
const DEPTH = 6;

function causes(error: unknown): Cause[] {
  const chain: Cause[] = [];
  for (let next = error; typeof next === "object" && next !== null && chain.length < DEPTH; ) {
    // Our own words for the kind of failure say less than what lies below.
    if (!(next instanceof StoreFailure) || next.cause === undefined) chain.push(next as Cause);
    next = (next as Cause).cause;
  }
  return chain;
}

function matches({ codes, words }: KnownFailure, { code, message }: Cause): boolean {
  if (typeof code === "string") return codes.test(code);
  return words !== undefined && typeof message === "string" && words.test(message);
}

/** The SQLSTATE of an error or of what it wraps; `null` where the server did not answer. */
export function sqlStateOf(error: unknown): string | null {
  // Only the server's answers carry a severity; EPIPE looks like an SQLSTATE as well.
  const answered = causes(error).find(({ code, severity }) => typeof code === "string" && severity !== undefined);
  return answered === undefined ? null : String(answered.code);
}

/** The primary message, one line. Detail and context of a server's answer may quote rows, and are never shown. */
function serverWords(chain: readonly Cause[]): string {
  return String(chain.at(-1)?.message ?? "")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/\.$/, "");
}

function withheld(words: string, secrets: readonly string[]): string {
  // A worker's module has URLs of its own, whose passwords nobody told us.
  return secrets.some((secret) => words.includes(secret)) || /:\/\/[^\s/]*@/.test(words)
    ? "the details are withheld, because they hold a part of the database URL"
    : words;
}

function explained({ what, next, quoted, unsure }: KnownFailure, words: string, done: string | null): string {
  const fact = quoted === true ? `${what}: ${words}.` : what;
  const kept = done ?? (unsure === true ? null : "Nothing was changed.");
  return [fact, kept, next].filter((part) => part !== null).join(" ");
}

function unexpected(error: unknown, words: string, done: string | null): string {
  const name = error instanceof Error ? error.name : typeof error;
  const fact = `The command ended with an unexpected error (${name}): ${words === "" ? "no details" : words}.`;
  return [fact, done, "Check the state with oncekey status before running it again."]
    .filter((part) => part !== null)
    .join(" ");
}
