import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Console,
  createConsole,
  createConsoleIndexes,
  dropConsoleIndexes,
  hashPassword,
} from "../console/index.ts";
import { accountName } from "./account.ts";
import type { Command, Report } from "./command.ts";
import { type CommandLine, UsageError } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { givenText } from "./given.ts";
import { givenKeys, keyOptions } from "./keys.ts";
import { counted } from "./layout.ts";
import { withProgress } from "./progress.ts";
import { stopRequest, untilAborted } from "./stopping.ts";

const DEFAULT_PORT = 4100;
const LONGEST = 255;

/** `oncekey console`: the web console, until a signal ends it. */
export const consoleCommand: Command = {
  summary: "serve the web console",
  about: `Serves the console on the loopback interface until SIGTERM or SIGINT: what waits, entries and their life, the queue of
what needs a person, dead letters, the audit. User and password are made at the start and stand in a file that only you
may read; its name is in the one line on standard output. Looking needs the rights of the part "console", deciding
those of "operator" (oncekey migrate --grants). Charts need --metrics.

Lists by time, tenant, operation, key or reference need indexes that cost every request a little: --create-indexes
makes them beside traffic, as the owner of the tables, --drop-indexes takes them away; both then end.`,
  operands: [],
  options: {
    port: { value: "N", meaning: `where to listen, 0: any free one; default: ${DEFAULT_PORT}` },
    host: { value: "ADDRESS", meaning: "the interface; default: 127.0.0.1. Others only behind TLS" },
    metrics: { value: "URL", meaning: "the service's page of Prometheus metrics, for the charts" },
    tenant: { value: "TENANT", meaning: "show and change only this tenant's" },
    "read-only": { meaning: "change nothing" },
    "no-reveal": { meaning: "never show what is masked" },
    user: { value: "NAME", meaning: "the user's name, for the audit; default: your account's name" },
    "create-indexes": { meaning: "make the indexes that lists and searches need, then end" },
    "drop-indexes": { meaning: "drop them, then end" },
    ...keyOptions,
    ...databaseOptions,
  },
  examples: [
    "oncekey console --metrics http://127.0.0.1:9464/metrics",
    "oncekey console --read-only --no-reveal --tenant acme --port 0",
    "oncekey console --create-indexes",
  ],
  ends: true,
  run(line) {
    const { switches } = line;
    const wanted = (["create-indexes", "drop-indexes"] as const).filter((name) => switches.has(name));
    if (wanted.length > 1) throw new UsageError("--create-indexes and --drop-indexes exclude each other.");
    const [change] = wanted;
    const port = portOf(line);
    return withStore(line, (_store, database) =>
      change === undefined ? served(line, database, port) : indexed(database, change),
    );
  },
};

function portOf({ values }: CommandLine): number {
  const given = values.get("port") ?? String(DEFAULT_PORT);
  const port = /^\d{1,5}$/.test(given) ? Number(given) : 65_536;
  if (port <= 65_535) return port;
  throw new UsageError("--port must be a whole number from 0 to 65535.");
}

async function indexed({ driver, schema }: Database, change: "create-indexes" | "drop-indexes"): Promise<Report> {
  const work = change === "create-indexes" ? createConsoleIndexes : dropConsoleIndexes;
  const count = await withProgress((tell) => work(driver, { schema, tell }));
  const what = change === "create-indexes" ? "made" : "dropped";
  const text =
    count === 0 ? `Nothing had to be ${what}.\n` : `${counted(count, "index was", "indexes were")} ${what}.\n`;
  return { exitCode: 0, data: { [what]: count }, text };
}

async function served(line: CommandLine, database: Database, port: number): Promise<Report> {
  const name = (givenText(line, "user", LONGEST) ?? accountName()).trim();
  if (name === "") throw new UsageError("--user must name somebody.");
  const stopping = stopRequest().signal;
  const password = randomBytes(18).toString("base64url");
  const mounted = createConsole({
    ...database,
    ...(await optionsOf(line)),
    passwords: [
      { name, tenant: givenText(line, "tenant", LONGEST) ?? null, passwordHash: await hashPassword(password) },
    ],
  });
  const credentials = await credentialsFile(name, password);
  try {
    await serveUntil(stopping, mounted, { line, port, credentials: credentials.path });
  } finally {
    mounted.close();
    await credentials.remove();
  }
  return { exitCode: 0, data: { stopped: true }, text: "" };
}

async function optionsOf(line: CommandLine) {
  const { values, switches } = line;
  const metrics = values.get("metrics");
  if (metrics !== undefined && !/^https?:\/\//i.test(metrics))
    throw new UsageError("--metrics must be an http or https URL.");
  return {
    keys: await givenKeys(line, process.env),
    readOnly: switches.has("read-only"),
    reveal: !switches.has("no-reveal"),
    ...(metrics === undefined ? {} : { metrics }),
  };
}

/** In a folder that only this account may enter; gone with the process. */
async function credentialsFile(user: string, password: string) {
  const folder = await mkdtemp(join(tmpdir(), "oncekey-console-"));
  const path = join(folder, "credentials.json");
  await writeFile(path, `${JSON.stringify({ user, password })}\n`, { mode: 0o600, flag: "wx" });
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

interface Served {
  readonly line: CommandLine;
  readonly port: number;
  readonly credentials: string;
}

async function serveUntil(stopping: AbortSignal, mounted: Console, { line, port, credentials }: Served): Promise<void> {
  const server = createServer((req, res) => {
    if (req.url === "/") res.writeHead(302, { location: "/console/" }).end();
    else mounted.node(req, res);
  });
  const host = line.values.get("host") ?? "127.0.0.1";
  await listening(server, port, host);
  const address = server.address() as AddressInfo;
  const shownHost = address.family === "IPv6" ? `[${address.address}]` : address.address;
  const ready = { url: `http://${shownHost}:${address.port}/console/`, credentials, pid: process.pid };
  process.stdout.write(`oncekey console ready ${JSON.stringify(ready)}\n`);
  await untilAborted(stopping);
  mounted.close();
  server.close();
  server.closeAllConnections();
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        new UsageError(
          `The console cannot listen there (${error.code ?? error.name}). Choose another --port or --host.`,
        ),
      );
    });
    server.listen(port, host, resolve);
  });
}
