import { idBytes } from "../../core/identity.ts";
import type { MessageState } from "../../core/outbox.ts";
import { committing } from "./committing.ts";
import type { Driver, SqlParameter, SqlRow } from "./driver-port.ts";
import type { SchemaOptions } from "./migrate.ts";
import { number, text, textOrNull } from "./rows.ts";
import { DEFAULT_SCHEMA, type StatementName, statementRunner } from "./statements.ts";

/** Which messages an operator asks for; what is left out matches all. */
export interface MessageQuery {
  readonly state?: MessageState;
  /** An exact topic, or a prefix that ends in `*`. */
  readonly topic?: string;
  readonly tenant?: string;
  /** The entry that sent them: its id in hex. */
  readonly entryId?: string;
  /** Most messages listed. Default 100. */
  readonly limit?: number;
}

/** A message as an operator sees it: nothing of what it tells. */
export interface ListedMessage {
  readonly id: string;
  readonly topic: string;
  readonly tenant: string;
  readonly state: MessageState;
  /** Hex; `null` where a delivery's handler sent it. */
  readonly entryId: string | null;
  readonly attempts: number;
  /** What the last attempt that failed said. */
  readonly reason: string | null;
  readonly correlation: string | null;
  /** Whether a relay holds it at this moment. */
  readonly leased: boolean;
  /** Milliseconds since it was sent. */
  readonly ageMs: number;
  /** Milliseconds until it is due (or its lease ends), 0 or less: now; `null` where it is not pending. */
  readonly dueInMs: number | null;
}

/** Messages to act on: by their ids, or all dead letters of a topic (exact, or a prefix that ends in `*`). */
export type MessageSelection = { readonly ids: readonly string[] } | { readonly deadOf: string };

/** Messages in the order of their sending, oldest first, without payloads. For operators: reads the outbox. Raises `StoreFailure`. */
export async function listMessages<Tx>(
  driver: Driver<Tx>,
  query: MessageQuery = {},
  options: SchemaOptions = {},
): Promise<ListedMessage[]> {
  const { state = null, topic = null, tenant = null, entryId = null, limit = 100 } = query;
  const entry = entryId === null ? null : idBytes(entryId);
  return (await runAlone(driver, options, "list_messages", [state, topic, tenant, entry, limit])).map(listedMessage);
}

/**
 * Makes dead letters, and messages that wait for their next attempt, due at once, with all their attempts before them. One
 * that a relay holds is left to it. Returns how many. Raises `StoreFailure`.
 */
export function retryMessages<Tx>(
  driver: Driver<Tx>,
  selection: MessageSelection,
  options: SchemaOptions = {},
): Promise<number> {
  return changed(driver, options, "retry_messages", selection);
}

/**
 * Deletes messages that were not delivered, so that what was sent behind them in their order goes on. One that a relay
 * holds is left to it. Returns how many. Raises `StoreFailure`.
 */
export function discardMessages<Tx>(
  driver: Driver<Tx>,
  selection: MessageSelection,
  options: SchemaOptions = {},
): Promise<number> {
  return changed(driver, options, "discard_messages", selection);
}

async function changed<Tx>(
  driver: Driver<Tx>,
  options: SchemaOptions,
  name: StatementName,
  selection: MessageSelection,
): Promise<number> {
  const parameters = "ids" in selection ? [JSON.stringify(selection.ids), null] : [null, selection.deadOf];
  const [row] = await runAlone(driver, options, name, parameters);
  return number(row ?? {}, "changed");
}

async function runAlone<Tx>(
  driver: Driver<Tx>,
  options: SchemaOptions,
  name: StatementName,
  parameters: readonly SqlParameter[],
): Promise<readonly SqlRow[]> {
  return committing(statementRunner(driver, options.schema ?? DEFAULT_SCHEMA))(name, parameters);
}

function listedMessage(row: SqlRow): ListedMessage {
  return {
    id: text(row, "id"),
    topic: text(row, "topic"),
    tenant: text(row, "tenant"),
    state: text(row, "state") as MessageState,
    entryId: textOrNull(row, "entry_id"),
    attempts: number(row, "attempts"),
    reason: textOrNull(row, "reason"),
    correlation: textOrNull(row, "correlation"),
    leased: row.leased === true,
    ageMs: number(row, "age_ms"),
    dueInMs: row.due_in_ms === null ? null : number(row, "due_in_ms"),
  };
}
