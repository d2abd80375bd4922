import { OncekeyError } from "../../core/errors.ts";
import type { NewMessage } from "../../core/message.ts";
import type { LockResult, Session } from "../../core/store.ts";
import { arrivalSession } from "./arrivals.ts";
import type { Run } from "./committing.ts";
import type { SqlParameter, SqlRow } from "./driver-port.ts";
import { ownFailure, sqlState, storeFailure, violates } from "./errors.ts";
import { type LayoutSeen, readEntry } from "./layout-seen.ts";
import { limitParameters } from "./limits.ts";
import { lockKeys } from "./lock-keys.ts";
import { messageParameters } from "./outbox.ts";
import { completionParameters, entryParameters, text, textOrNull } from "./rows.ts";
import type { RunStatement, StatementName } from "./statements.ts";

/** What a session needs to know about the transaction it belongs to. */
export interface SessionScope<Tx> {
  readonly tx: Tx;
  readonly schema: string;
  readonly run: RunStatement<Tx>;
  readonly seen: LayoutSeen;
  /** `true` once the transaction is over: a body that was given up must not write on. */
  isOver(): boolean;
}

/** The statements that Oncekey adds to an open transaction. */
export function openSession<Tx>(scope: SessionScope<Tx>): Session<Tx> {
  // The transaction's own id, remembered by its first statement: what tells when the handler has ended it.
  let xact: string | null = null;
  const run: Run = (name, parameters) => runOwn(scope, name, parameters);
  const remember = (given: string | null) => {
    xact ??= given;
  };
  return {
    tx: scope.tx,
    ...arrivalSession({ schema: scope.schema, run, xact: () => xact, remember }),
    async lock(id, lockDigest, limits) {
      const [row] = await run("lock", [...lockKeys(scope.schema, id, lockDigest), ...limitParameters(limits)]);
      xact = textOrNull(row ?? {}, "xact");
      return text(row ?? {}, "result") as LockResult;
    },
    async enter(id, fence, limits) {
      const [row] = await run("enter", [id, fence, ...limitParameters(limits)]);
      xact = textOrNull(row ?? {}, "xact");
      return row?.matched === true;
    },
    read: (id) => readEntry(run, scope.seen, id),
    async forgetExpired(id) {
      await run("forget_expired", [id]);
    },
    async insertFinished(entry, completion) {
      const name = scope.seen.apart ? "insert_finished_apart" : "insert_finished";
      const rows = await run(name, [...entryParameters(entry), ...completionParameters(completion), xact]);
      if (rows.length === 0) throw storeFailure("transaction_lost");
    },
    async recordPhase(id, fence, { position, kind, name, value }) {
      return fenced(await run("record_phase", [id, fence, position, kind, name, value, xact]));
    },
    async complete(id, fence, completion) {
      const name = scope.seen.apart ? "complete_apart" : "complete";
      return fenced(await run(name, [id, fence, ...completionParameters(completion), xact]));
    },
    async send(message) {
      await run("send", messageParameters(scope.schema, message));
    },
  };
}

type SendScope<Tx> = Omit<SessionScope<Tx>, "isOver" | "seen">;

/** Writes an outbox row in a transaction of the caller's own. */
export async function sendInside<Tx>(scope: SendScope<Tx>, message: NewMessage): Promise<void> {
  await runOwn({ ...scope, isOver: () => false }, "send", messageParameters(scope.schema, message));
}

async function runOwn<Tx>(
  scope: Omit<SessionScope<Tx>, "seen">,
  name: StatementName,
  parameters: readonly SqlParameter[],
): Promise<readonly SqlRow[]> {
  if (scope.isOver()) throw storeFailure("transaction_lost");
  try {
    return await scope.run(name, parameters, scope.tx);
  } catch (error) {
    if (violates(error, "phase_pkey")) throw positionTaken(error);
    // Message ids are derived: the attempt that took over has committed this very message, and with it this step.
    if (violates(error, "outbox_pkey")) throw storeFailure("conflict", error);
    // A record was committed while the entry's row was waited for: run again, the completion sees it.
    if (name === "complete_apart" && sqlState(error) === "23503") throw storeFailure("contention", error);
    // The client knows by itself that the handler has ended the transaction.
    if (sqlState(error) === "25P01") throw storeFailure("transaction_lost", error);
    throw ownFailure(error);
  }
}

function fenced(rows: readonly SqlRow[]): boolean {
  if (rows[0]?.same !== true) throw storeFailure("transaction_lost");
  return rows[0].matched === true;
}

/** A journal never changes what it holds. */
export function positionTaken(cause: unknown): OncekeyError {
  return new OncekeyError(
    "oncekey_store_broken",
    "A position of the entry's journal is taken by another record. The first one was kept; report this as a bug.",
    { cause },
  );
}
