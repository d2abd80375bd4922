import type { Driver, SqlParameter, SqlRow } from "../../stores/postgres/index.ts";

/** How bad it is. `error`: promises are broken or will be. `warning`: act soon. `note`: know it. */
export type Severity = "ok" | "note" | "warning" | "error";

/** One thing that was found. Holds no key, tenant, client or body: digests of them, and ids of entries. */
export interface Finding {
  readonly severity: Exclude<Severity, "ok">;
  /** What was found, with numbers; where only a part was read, it says which. */
  readonly what: string;
  /** Why it matters. */
  readonly why: string;
  /** A command or statement where there is one, else what to do. */
  readonly fix: string;
}

/** What a look saw. */
export interface Seen {
  /** One line, also where nothing is wrong. */
  readonly seen: string;
  readonly findings: readonly Finding[];
}

/** The two sides of a connection: what the client was told, and the server's own process. */
export interface ConnectionPids {
  /** `null` where the database client does not show it. */
  readonly client: number | null;
  readonly server: number;
}

/** What only the operator knows. Durations in milliseconds. */
export interface Given {
  /** How long clients go on retrying. */
  readonly clientWindowMs: number;
  /** Connections of one process's pool; `null`: not said. */
  readonly pool: number | null;
  readonly processes: number;
  /** Requests at once in one process; `null`: not said. */
  readonly concurrency: number | null;
  /** A transaction open for longer keeps vacuum from its work. */
  readonly longTransactionMs: number;
  /** Entries of a day from which on deleting them one by one costs too much. */
  readonly manyPerDay: number;
}

/** What a check looks through: bounded, read-only statements. */
export interface View {
  /** The schema's name, in quotes. */
  readonly schema: string;
  readonly given: Given;
  readonly driver: Driver<unknown>;
  /** The local clock, in milliseconds since 1970. */
  now(): number;
  /** Runs one statement in a read-only transaction of its own, with time limits. Raises the client's own error. */
  sql(text: string, parameters?: readonly SqlParameter[]): Promise<readonly SqlRow[]>;
  /** Of the connection that ran the last statement. */
  pids(): ConnectionPids | null;
  /** The same through a database client of its own, while the first one stays connected. */
  beside<R>(body: (view: View) => Promise<R>): Promise<R>;
}

/** One check. */
export interface Check {
  readonly name: string;
  /** What must be there before it can look. */
  readonly needs: "server" | "tables";
  /** Raises the database client's own error; {@link NotLooked} where it has nothing to look at. */
  look(view: View): Promise<Seen>;
}

/** The check cannot be made; the message says why, and what would show it. */
export class NotLooked extends Error {
  override readonly name = "NotLooked";
}

/** A count or measure of a row, which drivers give as text or number. */
export function numberOf(row: SqlRow | undefined, column: string): number {
  return Number(row?.[column] ?? 0);
}

/** A text of a row; empty where it is null. */
export function textOf(row: SqlRow | undefined, column: string): string {
  return String(row?.[column] ?? "");
}

/** A look that found what was hoped for, or what is told of it. */
export function seen(line: string, findings: readonly (Finding | null)[] = []): Seen {
  return { seen: line, findings: findings.filter((finding) => finding !== null) };
}
