import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { killProgram, type Program, type ProgramOptions, startProgram } from "../../test/support/program.ts";

/** What a process of the campaign does. */
export type Role = "api" | "worker" | "relay" | "psp" | "clients";

/** One process of the campaign, over all of its lives. */
export interface Member {
  /** `api-1`, `worker-2`, … */
  readonly name: string;
  readonly role: Role;
  /** Where it listens; 0 where it does not. */
  readonly port: number;
  /** The file whose offset its clock is moved by; `null` where it cannot be. */
  readonly clock: string | null;
  isUp(): boolean;
  /** Whether a fault has it at the moment. */
  isBusy(): boolean;
  /** Runs while no other fault touches this member. */
  exclusively<T>(run: () => Promise<T>): Promise<T>;
  /** Resolves when it is ready. Where it cannot start (its database is down) it is tried again. Raises after a minute. */
  start(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with how it ended, when it has. After `limitMs` (default 25,000) it is killed: `late`. */
  stop(limitMs?: number): Promise<string>;
  /** SIGSTOP for so long, then SIGCONT. */
  freeze(ms: number): Promise<void>;
}

/** What a member is made of. */
export interface MemberOptions {
  readonly name: string;
  readonly role: Role;
  readonly port: number;
  readonly clock: string | null;
  /** Asked for each start. */
  readonly program: () => ProgramOptions;
  /** Whether the campaign is over: nothing starts any more. */
  readonly isOver: () => boolean;
  /** Told where it ended without being asked to, or otherwise than it should. */
  readonly onFallen: (what: string) => void;
}

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 25_000;
const START_PAUSE_MS = 200;

/** A member that is not running yet. */
export function memberOf(options: MemberOptions): Member {
  const { name, role, port, clock } = options;
  const life: { program: Program | null; child: ChildProcess | null } = { program: null, child: null };
  let turn: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  /** The living program, from now on nobody's: its end is what was asked for. */
  const letGo = () => {
    const { program, child } = life;
    life.program = null;
    life.child = null;
    return { program, child };
  };
  return {
    ...{ name, role, port, clock },
    isUp: () => life.program !== null,
    isBusy: () => waiting > 0,
    exclusively<T>(run: () => Promise<T>): Promise<T> {
      waiting++;
      const mine = turn.then(run).finally(() => waiting--);
      turn = mine.catch(() => undefined);
      return mine;
    },
    async start() {
      if (life.program !== null) return;
      const program = await started(options, (child) => {
        life.child = child;
      });
      life.program = program;
      void program.ended.then((how) => {
        if (life.program !== program) return;
        letGo();
        options.onFallen(`${name} ended by itself: ${how}`);
      });
    },
    async kill() {
      const { program, child } = letGo();
      if (child !== null) await killProgram(child);
      await program?.ended;
    },
    async stop(limitMs = STOP_LIMIT_MS) {
      const { program, child } = letGo();
      if (program === null || child === null) return "0";
      program.signal("SIGTERM");
      const how = await Promise.race([program.ended, sleep(limitMs, "late", { ref: false })]);
      if (how === "late") await killProgram(child);
      if (how !== "0") options.onFallen(`${name} ended ${how} when it was asked to stop`);
      return how;
    },
    async freeze(ms) {
      const { program } = life;
      program?.signal("SIGSTOP");
      await sleep(ms);
      program?.signal("SIGCONT");
    },
  };
}

async function started({ program, isOver }: MemberOptions, own: (child: ChildProcess) => void): Promise<Program> {
  const deadlineMs = performance.now() + START_LIMIT_MS;
  for (;;) {
    if (isOver()) throw new Error("The campaign is over.");
    try {
      return await startProgram(program(), own);
    } catch (error) {
      if (isOver() || performance.now() > deadlineMs) throw error;
      await sleep(START_PAUSE_MS);
    }
  }
}
