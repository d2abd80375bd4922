import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Mutation } from "./canary.ts";

/** What the SQL is embedded into. */
const EMBEDDED = "src/stores/postgres/sql.gen.ts";

/** Why mutations cannot be made as they are written; `null`: they can. */
export async function staleness(edits: readonly Mutation[], root: string): Promise<string | null> {
  const reasons = await Promise.all(edits.map((edit) => stalenessOf(edit, root)));
  return edits.length === 0 ? "stale: it changes nothing" : (reasons.find((reason) => reason !== null) ?? null);
}

async function stalenessOf({ file, find, replace }: Mutation, root: string): Promise<string | null> {
  const text = await readFile(join(root, file), "utf8").catch(() => null);
  if (text === null) return `stale: there is no ${file}`;
  const times = text.split(find).length - 1;
  if (times !== 1) return `stale: its text stands ${times} times in ${file}`;
  return find === replace ? "stale: it changes nothing" : null;
}

/** Makes mutations in a copy of the repository for as long as `use` takes. */
export async function mutated<T>(edits: readonly Mutation[], root: string, use: () => Promise<T>): Promise<T> {
  const isSql = edits.some(({ file }) => file.startsWith("sql/"));
  const touched = [...new Set([...edits.map(({ file }) => file), ...(isSql ? [EMBEDDED] : [])])];
  const before = new Map(await Promise.all(touched.map(async (file) => [file, await textOf(root, file)] as const)));
  try {
    for (const edit of edits) await make(edit, root);
    if (isSql) await embed(root);
    return await use();
  } finally {
    for (const [file, text] of before) await writeFile(join(root, file), text);
  }
}

async function make({ file, find, replace }: Mutation, root: string): Promise<void> {
  const text = await textOf(root, file);
  // A function as the replacement: in a text, `$1` would mean something.
  await writeFile(
    join(root, file),
    text.replace(find, () => replace),
  );
}

function textOf(root: string, file: string): Promise<string> {
  return readFile(join(root, file), "utf8");
}

async function embed(root: string): Promise<void> {
  await promisify(execFile)(process.execPath, ["--import", "tsx", "scripts/embed-sql.ts"], { cwd: root });
}
