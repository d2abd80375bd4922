import type { BodyList } from "../../core/body-store.ts";
import type { Run } from "./committing.ts";
import { boolean, text } from "./rows.ts";

/** The list of bodies that may have to be removed. */
export function bodyList(run: Run): BodyList {
  return {
    async note(pointer, entryId, checkInMs) {
      await run("note_body", [pointer, entryId, checkInMs]);
    },
    async due(limit, againInMs) {
      const rows = await run("due_bodies", [limit, againInMs]);
      return rows.map((row) => ({ pointer: text(row, "pointer"), inUse: boolean(row, "in_use") }));
    },
    async strike(pointers) {
      for (const pointer of pointers) await run("strike_body", [pointer]);
    },
  };
}
