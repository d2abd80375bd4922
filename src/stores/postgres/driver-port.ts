import { createHash } from "node:crypto";

/** A value that a statement of ours takes. Statements cast every parameter; there are no arrays. */
export type SqlParameter = string | number | boolean | Uint8Array | null;

/** A row as the driver returned it: bytea as bytes, int4 and float8 as numbers, text and int8 as text, booleans, null. */
export type SqlRow = Readonly<Record<string, unknown>>;

/**
 * How Oncekey talks to PostgreSQL through somebody else's client or ORM: one method to run a statement, one to open a
 * transaction. `Tx` is the client's own transaction type, handed to business code as it is.
 */
export interface Driver<Tx> {
  readonly name: string;
  /** Size of the pool behind it; `null` where the driver cannot know. */
  readonly connections: number | null;
  /**
   * Whether `transaction` can give up a body that never settles: when it rejects with {@link TransactionAbandoned}, the
   * connection is destroyed and never handed out again (the body may still use it).
   */
  readonly abandons: boolean;
  /** `false`: the client cannot carry a megabyte of text as a parameter, and statements are not merged. */
  readonly groups?: false;
  /**
   * Runs one statement (`$1` … parameters) on `tx`, or on any connection in a commit of its own; under a name only where
   * its caller has asked for that (see `statementName`). Rejects with the client's own error; SQLSTATE in `code` where the server answered.
   */
  run(sql: string, parameters: readonly SqlParameter[], tx?: Tx): Promise<readonly SqlRow[]>;
  /**
   * BEGIN, body, COMMIT; ROLLBACK when the body rejects, whose error is then raised as it is. Where the client shows the
   * command tag of COMMIT, anything but COMMIT rejects with {@link TransactionAborted}.
   */
  transaction<R>(body: (tx: Tx) => Promise<R>): Promise<R>;
}

/**
 * The name under which a driver prepares a statement of ours: the same text has the same name on every connection and in
 * every process, and no other text has it. Statements without parameters (migrations, savepoints) are not worth one.
 */
export function statementName(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  const name = `oncekey_${createHash("sha256").update(sql).digest("hex").slice(0, 16)}`;
  names.set(sql, name);
  return name;
}

/** Our texts are fixed: as many as there are files in sql/statements, for each schema. */
const names = new Map<string, string>();

/** The server answered COMMIT with ROLLBACK: a statement had failed and its error was swallowed. */
export class TransactionAborted extends Error {
  override readonly name = "TransactionAborted";
}

export { TransactionAbandoned } from "../../core/store.ts";
