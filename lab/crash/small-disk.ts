import { execFileSync } from "node:child_process";
import { chownSync, closeSync, mkdirSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";

/** A small file system of its own that holds the entries, so that their disk can be filled and nobody else's. */
export interface SmallDisk {
  /** Writes until not one byte is left. */
  fill(): void;
  /** Makes room again. */
  free(): void;
  close(): void;
}

/** There is one, or why not. */
export type SmallDiskResult =
  | { readonly kind: "mounted"; readonly disk: SmallDisk }
  | { readonly kind: "missing"; readonly why: string };

const SIZE = "64m";
const CHUNK = Buffer.alloc(64 * 1024);

/** Mounts it below `dir`, for the account that the server's data belong to. Needs the right to mount. */
export function mountSmallDisk(dir: string, dataDirectory: string): SmallDiskResult {
  const place = join(dir, "small");
  mkdirSync(place, { mode: 0o755 });
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE}`, "tmpfs", place], { stdio: "pipe" });
  } catch (error) {
    return { kind: "missing", why: `a small file system cannot be mounted here (${reasonOf(error)})` };
  }
  const { uid, gid } = statSync(dataDirectory);
  for (const path of [place, tablespaceOf(dir)]) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chownSync(path, uid, gid);
  }
  const ballast = join(place, "ballast");
  return {
    kind: "mounted",
    disk: {
      fill: () => fillUp(ballast),
      free: () => rmSync(ballast, { force: true }),
      close: () => void execFileSync("umount", [place], { stdio: "pipe" }),
    },
  };
}

/** Moves the entries, which every request writes, into it. */
export async function moveEntries(pool: pg.Pool, dir: string): Promise<void> {
  await pool.query(`CREATE TABLESPACE small LOCATION '${tablespaceOf(dir)}'`);
  await pool.query("ALTER TABLE oncekey.entry SET TABLESPACE small");
  const { rows } = await pool.query<{ name: string }>(
    "SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'oncekey' AND tablename = 'entry'",
  );
  for (const { name } of rows) await pool.query(`ALTER INDEX oncekey.${name} SET TABLESPACE small`);
}

const tablespaceOf = (dir: string): string => join(dir, "small", "space");

function fillUp(path: string): void {
  const file = openSync(path, "a");
  try {
    // Whole chunks first, then byte by byte what is left of the last page.
    for (const piece of [CHUNK, CHUNK.subarray(0, 4096), CHUNK.subarray(0, 1)]) writeUntilFull(file, piece);
  } finally {
    closeSync(file);
  }
}

function writeUntilFull(file: number, piece: Buffer): void {
  try {
    for (;;) writeSync(file, piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}

function reasonOf(error: unknown): string {
  const { stderr, code } = error as { readonly stderr?: Buffer; readonly code?: string };
  return stderr?.toString().trim().split("\n")[0] || code || "mount failed";
}
