import { rmSync } from "node:fs";
import { join } from "node:path";
import { startEmbedded } from "./embedded.ts";
import { type DataHome, openDataHome } from "./embedded-home.ts";
import { claimOwnership, publishJson, readJson } from "./ownership.ts";
import { isAlive, ownMark, type ProcessMark, until } from "./processes.ts";
import { startPsp } from "./psp-process.ts";
import type { Settings } from "./settings.ts";

/** What the API stands on: a database and a payment provider. */
export interface Stack {
  readonly databaseUrl: string;
  readonly pspUrl: string;
  /** Stops what this process started or adopted; nothing where it only joined. */
  stop(): Promise<void>;
}

interface PublishedStack {
  readonly owner: ProcessMark;
  readonly databaseUrl: string;
  readonly pspUrl: string;
}

const JOIN_LIMIT_MS = 120_000;

/**
 * Database and provider as the settings ask. The first process on a data directory owns both: it starts them, or adopts
 * what a killed owner left behind, and stops them when it ends. Further processes join while it lives. `tell` gets
 * lines for a person to read.
 */
export async function openStack(settings: Settings, tell: (line: string) => void): Promise<Stack> {
  const { databaseUrl, pspUrl } = settings;
  if (databaseUrl !== undefined && pspUrl !== undefined) return { databaseUrl, pspUrl, stop: async () => undefined };
  const home = homeOf(settings, tell);
  for (;;) {
    const ownership = claimOwnership(home.dir);
    if (ownership.kind === "owner") return startStack(settings, home);
    const joined = await joinStack(settings, home, ownership.by);
    if (joined !== "owner_ended") return joined;
  }
}

/** The stack an API of this data directory published, for a worker beside it. Raises after a minute without one. */
export async function findStack(settings: Settings, tell: (line: string) => void): Promise<Stack> {
  const { databaseUrl, pspUrl } = settings;
  if (databaseUrl !== undefined && pspUrl !== undefined) return { databaseUrl, pspUrl, stop: async () => undefined };
  const { dir } = homeOf(settings, tell);
  const published = await until(60_000, () => readJson<PublishedStack>(join(dir, "stack.json")));
  if (published === null)
    throw new Error(`No API runs on ${dir}. Run npm start first, or set DATABASE_URL and PSP_URL.`);
  return joinedStack(settings, published);
}

/** Without an embedded database no account needs to reach the directory. */
function homeOf(settings: Settings, tell: (line: string) => void): DataHome {
  if (settings.databaseUrl !== undefined) return { dir: settings.dataDir, bin: "", account: null };
  return openDataHome(settings.dataDir, tell);
}

async function startStack(settings: Settings, home: DataHome): Promise<Stack> {
  const file = join(home.dir, "stack.json");
  const stops: (() => void | Promise<void>)[] = [() => rmSync(file, { force: true })];
  const stop = async () => {
    for (const step of stops) await step();
  };
  try {
    const database = settings.databaseUrl === undefined ? await startEmbedded(home) : { url: settings.databaseUrl };
    if ("stop" in database) stops.push(() => database.stop());
    const psp =
      settings.pspUrl === undefined
        ? await startPsp(join(home.dir, "psp"), settings.pspPort)
        : { url: settings.pspUrl };
    // The provider stops before the database: it is the one that others wait for.
    if ("stop" in psp) stops.splice(1, 0, () => psp.stop());
    const stack = { databaseUrl: database.url, pspUrl: psp.url };
    publishJson(file, { owner: ownMark(), ...stack } satisfies PublishedStack);
    return { ...stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function joinStack(settings: Settings, home: DataHome, owner: ProcessMark): Promise<Stack | "owner_ended"> {
  const published = await until(JOIN_LIMIT_MS, () => {
    if (!isAlive(owner)) return "owner_ended";
    const stack = readJson<PublishedStack>(join(home.dir, "stack.json"));
    // An owner about to stop withdraws its stack; a killed one's may still be lying there.
    return stack?.owner.pid === owner.pid && stack.owner.startedAt === owner.startedAt ? stack : null;
  });
  if (published === null)
    throw new Error(`Process ${owner.pid} owns ${home.dir} but does not become ready. Stop it first.`);
  return published === "owner_ended" ? published : joinedStack(settings, published);
}

function joinedStack(settings: Settings, published: PublishedStack): Stack {
  return {
    databaseUrl: settings.databaseUrl ?? published.databaseUrl,
    pspUrl: settings.pspUrl ?? published.pspUrl,
    stop: async () => undefined,
  };
}
