import { appendFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Behaviour, GOOD_DAY } from "../../examples/payments/psp/behaviour.ts";
import { repositoryRoot } from "../../scripts/check.ts";
import { bundleExample, removePrograms } from "../../test/e2e/support/example-programs.ts";
import { spawnProgram } from "../../test/support/program.ts";
import { type Crew, crewOf } from "./crew.ts";
import { type Deploy, deploysOf } from "./deploy.ts";
import { type Network, openNetwork } from "./network.ts";
import { choosePorts } from "./ports.ts";
import { type LabServer, openLabServer } from "./server.ts";
import { openSink, type Sink } from "./sink.ts";
import { type CampaignOptions, CREW } from "./terms.ts";

/** The whole service under test, what stands around it, and the handles of everything that faults touch. */
export interface World {
  readonly options: CampaignOptions;
  /** Everything that is kept lies below. */
  readonly dir: string;
  readonly database: LabServer;
  readonly network: Network;
  readonly crew: Crew;
  readonly deploy: Deploy;
  readonly sink: Sink;
  /**
   * The provider as it is between faults: where charges are settled by cancelling, it knows no key twice, or its own care
   * would hide a second payment.
   */
  readonly goodDay: Behaviour;
  /** Changes how the provider behaves. Tried until the provider takes it. */
  behave(change: Partial<Behaviour>): Promise<Behaviour>;
  /** Runs `oncekey` straight on the database. */
  command(args: readonly string[]): Promise<{ readonly code: string; readonly output: string }>;
  /** Stops and removes all of it; once. */
  close(): Promise<void>;
}

const source = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const PROGRAMS = {
  "lab-clients": source("./clients.ts"),
  "lab-sweeper": source("./service-sweeper.ts"),
  "lab-relay": source("./service-relay.ts"),
};
const FAKETIME = ["x86_64", "aarch64"].map((arch) => `/usr/lib/${arch}-linux-gnu/faketime/libfaketime.so.1`);

/** Builds it, started but for the clients. */
export async function openWorld(options: CampaignOptions): Promise<World> {
  const ends: (() => unknown)[] = [];
  let ending: Promise<void> | undefined;
  const close = () => {
    ending ??= (async () => {
      for (const end of ends.splice(0).reverse()) await end();
    })();
    return ending;
  };
  const owned = <T>(value: T, end: (value: T) => unknown): T => {
    ends.push(() => end(value));
    return value;
  };
  try {
    return { ...(await build(options, owned)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Owned = <T>(value: T, end: (value: T) => unknown) => T;

async function build(options: CampaignOptions, owned: Owned): Promise<Omit<World, "close">> {
  const dir = owned(mkdtempSync(join(tmpdir(), "oncekey-crash-")), removeDirectory);
  chmodSync(dir, 0o755);
  for (const name of ["data", "logs"]) mkdirSync(join(dir, name));
  const programs = owned(await bundleExample(PROGRAMS), removePrograms);
  const ports = await choosePorts(CREW.apis);
  const database = owned(await openLabServer(dir, ports.database), (one) => one.close());
  const sink = owned(await openSink(), (one) => one.close());
  const network = owned(await openNetwork(ports, database.url), (one) => one.close());
  const deploy = deploysOf(options.seed);
  // A deploy runs all processes with one environment, so what a fault has changed concerns the next start of each.
  deploy.upgrade();
  const crew = owned(
    crewOf({
      ...{ options, dir, programs, deploy, ports, network },
      sinkUrl: sink.url,
      faketime: FAKETIME.find((path) => existsSync(path)) ?? null,
      log: (name, text) => appendFileSync(join(dir, "logs", `${name}.log`), text),
    }),
    (one) => one.close(),
  );
  await Promise.all(crew.members.filter(({ role }) => role === "psp" || role === "api").map((one) => one.start()));
  await Promise.all(crew.members.filter(({ role }) => role !== "clients").map((one) => one.start()));
  const goodDay = { ...GOOD_DAY, dedupe: options.recover === "dedupes" };
  const change = (behaviour: Partial<Behaviour>) => behave(`http://127.0.0.1:${ports.psp}/behaviour`, behaviour);
  await change(goodDay);
  return {
    ...{ options, dir, database, network, crew, deploy, sink, goodDay },
    behave: change,
    command: (args) => runCommand(programs, { DATABASE_URL: database.url, ...deploy.env() }, args),
  };
}

const BEHAVE_TRIES = 200;

async function behave(url: string, change: Partial<Behaviour>): Promise<Behaviour> {
  for (let attempt = 1; ; attempt++) {
    try {
      const signal = AbortSignal.timeout(5_000);
      const answer = await fetch(url, { method: "POST", body: JSON.stringify(change), signal });
      return (await answer.json()) as Behaviour;
    } catch (error) {
      // It is down, or asleep: a fault of another lane.
      if (attempt === BEHAVE_TRIES) throw error;
      await new Promise((resolve) => void setTimeout(resolve, 100));
    }
  }
}

async function runCommand(programs: string, env: Readonly<Record<string, string>>, args: readonly string[]) {
  const program = spawnProgram({ file: join(programs, "oncekey.mjs"), args, env, cwd: repositoryRoot }, () => {});
  return { code: await program.ended, output: program.output() };
}

function removeDirectory(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
