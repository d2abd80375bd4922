import type { NewEntry } from "../core/entry.ts";
import type { Origin } from "./definition.ts";

/** What an entry tells business code of the request that made it. */
export function originOf({ id, key, tenant, client }: NewEntry): Origin {
  return { id: Buffer.from(id).toString("hex"), key, scope: { tenant, client } };
}
