import type { BodyList } from "../../core/body-store.ts";
import { arrive, entryKey, type Tables } from "./tables.ts";

/** The list of bodies that may have to be removed. */
export function memoryBodies(tables: Tables): BodyList {
  return {
    async note(pointer, entryId, checkInMs) {
      const copy = new Uint8Array(entryId);
      await arrive();
      tables.bodies.set(pointer, { entryId: copy, checkAt: tables.now() + checkInMs });
    },
    async due(limit, againInMs) {
      await arrive();
      const now = tables.now();
      const due = [...tables.bodies].filter(([, { checkAt }]) => checkAt <= now).slice(0, limit);
      return due.map(([pointer, { entryId }]) => {
        tables.bodies.set(pointer, { entryId, checkAt: now + againInMs });
        const inUse = tables.entries.get(entryKey(entryId))?.outcome?.pointer === pointer;
        return { pointer, inUse };
      });
    },
    async strike(pointers) {
      await arrive();
      for (const pointer of pointers) {
        // What a purge noted anew meanwhile is due now, not later.
        if ((tables.bodies.get(pointer)?.checkAt ?? 0) > tables.now()) tables.bodies.delete(pointer);
      }
    },
  };
}
