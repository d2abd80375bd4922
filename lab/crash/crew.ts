import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/check.ts";
import type { ClientSettings } from "./clients.ts";
import type { Deploy } from "./deploy.ts";
import { type Member, memberOf, type Role } from "./member.ts";
import type { Network } from "./network.ts";
import type { Ports } from "./ports.ts";
import { type CampaignOptions, CREW, TIMES } from "./terms.ts";

/** All processes of the campaign. */
export interface Crew {
  readonly members: readonly Member[];
  of(role: Role): readonly Member[];
  /** What ended without being asked to. */
  readonly fallen: readonly string[];
  /** Kills all of them; none starts again. */
  close(): Promise<void>;
}

/** What the processes are started with. */
export interface CrewParts {
  readonly options: CampaignOptions;
  /** The campaign's directory. */
  readonly dir: string;
  /** Where the bundled programs lie. */
  readonly programs: string;
  /** The library that fakes clocks, where there is one. */
  readonly faketime: string | null;
  readonly deploy: Deploy;
  readonly sinkUrl: string;
  readonly ports: Ports;
  readonly network: Network;
  /** Gets everything that the processes write. */
  readonly log: (name: string, text: string) => void;
}

const LANES = { keptLanes: 5, rawLanes: 6 };

/** The crew, not started yet. */
export function crewOf(parts: CrewParts): Crew {
  const fallen: string[] = [];
  let over = false;
  const { ports, programs, dir, network, options } = parts;
  const make = (role: Role, index: number, port: number, file: string, args: readonly string[], env: () => Env) => {
    const name = `${role}-${index}`;
    const clock = parts.faketime !== null && role !== "psp" && role !== "clients" ? join(dir, `clock-${name}`) : null;
    if (clock !== null) writeFileSync(clock, "+0");
    const program = () => ({
      file: join(programs, file),
      args,
      cwd: repositoryRoot,
      env: { ...env(), ...(clock === null ? {} : fakedClock(parts.faketime ?? "", clock)) },
      onText: (text: string) => parts.log(name, text),
    });
    const onFallen = (what: string) => void fallen.push(what);
    return memberOf({ name, role, port, clock, program, isOver: () => over, onFallen });
  };
  const service = (role: "api" | "worker" | "relay") => () => serviceEnv(parts, network.databaseUrls[role]);
  const worker = (role: "worker" | "relay", module: string) => (_: unknown, index: number) =>
    make(role, index + 1, 0, "oncekey.mjs", ["worker", join(programs, module)], service(role));
  let life = 0;
  const clientEnv = (): Env => {
    const settings: ClientSettings = { front: network.frontUrl, dir, seed: options.seed, life: ++life, ...LANES };
    return { LAB_CLIENTS: JSON.stringify(settings) };
  };
  const members = [
    make("psp", 1, ports.psp, "psp.mjs", [], () => ({ PSP_PORT: `${ports.psp}`, PSP_DATA_DIR: join(dir, "psp") })),
    ...ports.apis.map((port, index) =>
      make("api", index + 1, port, "start.mjs", [], () => ({ ...service("api")(), PORT: String(port) })),
    ),
    ...Array.from({ length: CREW.workers }, worker("worker", "lab-sweeper.mjs")),
    ...Array.from({ length: CREW.relays }, worker("relay", "lab-relay.mjs")),
    make("clients", 1, 0, "lab-clients.mjs", [], clientEnv),
  ];
  return {
    members,
    fallen,
    of: (role) => members.filter((one) => one.role === role),
    async close() {
      over = true;
      await Promise.all(members.map((one) => one.kill()));
    },
  };
}

type Env = Readonly<Record<string, string>>;

function serviceEnv({ options, dir, deploy, sinkUrl, network }: CrewParts, databaseUrl: string): Env {
  return {
    DATABASE_URL: databaseUrl,
    PSP_URL: network.pspUrl,
    ONCEKEY_DATA_DIR: join(dir, "data"),
    ONCEKEY_WORKER: "0",
    ONCEKEY_LEASE_MS: String(TIMES.leaseMs),
    ONCEKEY_WAIT_MS: String(TIMES.waitMs),
    ONCEKEY_RETENTION_MS: String(TIMES.retentionMs),
    ONCEKEY_PSP_RECOVER: options.recover,
    ONCEKEY_WEBHOOK_URL: sinkUrl,
    ...deploy.env(),
  };
}

/** Only the wall clock: timers and everything that measures durations stay as they are. */
function fakedClock(library: string, file: string): Env {
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}
