import type { BodyList } from "../../core/body-store.ts";
import type { Run } from "./committing.ts";
import type { SqlRow } from "./driver-port.ts";
import { boolean, text } from "./rows.ts";

const pointerOf = (row: SqlRow): string => text(row, "pointer");

/** The list of bodies that may have to be removed. */
export function bodyList(run: Run): BodyList {
  return {
    async note(pointer, entryId, checkInMs) {
      await run("note_body", [pointer, entryId, checkInMs]);
    },
    async due(limit, againInMs) {
      const taken = (await run("due_bodies", [limit, againInMs])).map((row) => ({
        pointer: pointerOf(row),
        mark: text(row, "mark"),
      }));
      if (taken.length === 0) return [];
      // In a snapshot newer than the one in which they were put off.
      const rows = await run("bodies_in_use", [JSON.stringify(taken)]);
      return rows.map((row) => ({ pointer: pointerOf(row), inUse: boolean(row, "in_use") }));
    },
    async strike(pointers) {
      for (const pointer of pointers) await run("strike_body", [pointer]);
    },
  };
}
