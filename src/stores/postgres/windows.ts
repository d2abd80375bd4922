import type { SqlParameter, SqlRow } from "./driver-port.ts";

/** Looks at the window behind a primary key; its last one is the column `last` of the only row, `null` at the end. */
export type LookAt = (after: SqlParameter) => Promise<readonly SqlRow[]>;

/** Stands before every id. */
export const NO_BYTES = new Uint8Array();

/**
 * Walks over a table in windows of its primary key, from `first` on: each is a short statement, wherever in a large table
 * it is. What is inserted behind the walk is not met. One row a window.
 */
export async function everyWindow(first: SqlParameter, look: LookAt): Promise<SqlRow[]> {
  const windows: SqlRow[] = [];
  for (let after = first; ; ) {
    const [row] = await look(after);
    if (row === undefined || row.last === null) return windows;
    windows.push(row);
    after = row.last as SqlParameter;
  }
}
