import type { Ledger } from "../../examples/payments/psp/ledger.ts";
import type { Action } from "./actions.ts";
import type { Cluster } from "./cluster.ts";
import type { Delivered } from "./settings.ts";

/** An entry as it stands. */
export interface EntryRow {
  readonly tenant: string;
  readonly operation: string;
  readonly key: string;
  readonly state: string;
  readonly reason: string | null;
}

/** A row of business. */
export interface BusinessRow {
  readonly table: "invoices" | "charges" | "refunds";
  readonly tenant: string;
  readonly key: string;
  readonly id: string;
  readonly status: string;
}

/** A payment at a provider, with the amount that tells whose it is. */
export interface Payment {
  readonly kind: "authorizations" | "captures";
  readonly key: string;
  readonly amount: number;
}

/** All that is known once nothing moves any more: what clients were answered, and what is there. */
export interface Evidence {
  readonly actions: readonly Action[];
  readonly entries: readonly EntryRow[];
  readonly rows: readonly BusinessRow[];
  readonly payments: readonly Payment[];
  readonly delivered: readonly Delivered[];
}

/** Where it is read from. */
export interface Sources {
  readonly cluster: Cluster;
  readonly databases: readonly string[];
  readonly actions: readonly Action[];
  readonly ledgers: readonly Ledger[];
  readonly delivered: readonly Delivered[];
}

const ENTRIES = "SELECT tenant, operation, key, state, reason FROM oncekey.entry";
const ROWS = (["invoices", "charges", "refunds"] as const)
  .map((table) => `SELECT '${table}' AS "table", tenant, idempotency_key AS key, id, status FROM ${table}`)
  .join(" UNION ALL ");

/** Reads everything from the node that leads now. */
export async function collect({ cluster, databases, actions, ledgers, delivered }: Sources): Promise<Evidence> {
  const leader = await cluster.leader();
  const entries: EntryRow[] = [];
  const rows: BusinessRow[] = [];
  for (const database of databases) {
    entries.push(...((await cluster.ask(leader, ENTRIES, database)) as unknown as EntryRow[]));
    rows.push(...((await cluster.ask(leader, ROWS, database)) as unknown as BusinessRow[]));
  }
  const payments = ledgers.flatMap(({ landed }) =>
    landed.map(({ kind, key, body }) => ({ kind, key, amount: Number(body.amount_minor) })),
  );
  return { actions: [...actions], entries, rows, payments, delivered: [...delivered] };
}

/** Identity of an action, as rows and entries have it. */
export const identityOf = ({ tenant, key }: { readonly tenant: string; readonly key: string }): string =>
  `${tenant} ${key}`;

/** How many there are of each. */
export function counted(names: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
