import { EPOCH_MS, type Member, observe, rest, type Stage, type Timer } from "./stage.ts";

/** Fires what is due of one process, in order. */
export async function fireDue(stage: Stage, member: Member): Promise<void> {
  for (let timer = firstTimer([member], stage.nowMs); timer !== null; timer = firstTimer([member], stage.nowMs)) {
    await fire(stage, timer);
  }
}

/** Whether a process has timers that should have fired already: it was paused. */
export function isOverdue(stage: Stage, member: Member): boolean {
  return member.timers.some(({ atMs }) => atMs <= stage.nowMs);
}

/** Moves time on. Timers of running processes fire on the way; the steps that they begin wait, as on a slow network. */
export async function moveTo(stage: Stage, targetMs: number): Promise<void> {
  const running = [...stage.processes.values()].filter(({ status }) => status === "running");
  for (let next = firstTimer(running, targetMs); next !== null; next = firstTimer(running, targetMs)) {
    if (next.timer.atMs > stage.nowMs) {
      stage.nowMs = next.timer.atMs;
      await stage.backend.moved();
    }
    await fire(stage, next);
  }
  stage.nowMs = targetMs;
  await stage.backend.moved();
}

interface Due {
  readonly member: Member;
  readonly timer: Timer;
}

function firstTimer(members: readonly Member[], untilMs: number): Due | null {
  let first: Due | null = null;
  for (const member of members) {
    for (const timer of member.timers) {
      if (timer.atMs <= untilMs && (first === null || timer.atMs < first.timer.atMs)) first = { member, timer };
    }
  }
  return first;
}

async function fire(stage: Stage, { member, timer }: Due): Promise<void> {
  member.timers = member.timers.filter((other) => other !== timer);
  observe(stage, member, "timer");
  timer.fire();
  await rest(stage);
}

/** The next instants after now: of anything, and of the store or what is outside. `null`: there is none. */
export function nextInstants(stage: Stage): { readonly anyMs: number | null; readonly lastingMs: number | null } {
  const lastingMs = firstAfter(stage.nowMs, [...storeInstants(stage), ...(stage.outside?.instants() ?? [])]);
  const timers = [...stage.processes.values()]
    .filter(({ status }) => status === "running")
    .flatMap((member) => member.timers.map(({ atMs }) => atMs));
  return { lastingMs, anyMs: firstAfter(stage.nowMs, lastingMs === null ? timers : [...timers, lastingMs]) };
}

const UNTIL_MS = 3_600_000;

/** The latest instant that explored time may move to: the world's own, or sooner while a process is paused. */
export function latestMs(stage: Stage): number {
  const { longestPauseMs: longest = Infinity, untilMs = UNTIL_MS } = stage.world.budget;
  const paused = [...stage.processes.values()].filter(({ status }) => status === "paused");
  return Math.min(EPOCH_MS + untilMs, ...paused.map(({ pausedAtMs }) => pausedAtMs + longest));
}

function firstAfter(nowMs: number, instants: readonly number[]): number | null {
  let first: number | null = null;
  for (const atMs of instants) if (atMs > nowMs && (first === null || atMs < first)) first = atMs;
  return first;
}

/** Instants at which the store's answers change although nobody writes. */
function storeInstants({ backend }: Stage): number[] {
  const { tables } = backend;
  if (tables === null) return [];
  const instants: (number | null)[] = [];
  for (const row of tables.entries.values()) {
    instants.push(row.leaseUntil, row.notBefore, row.sweepAt, row.settlesAt, row.expiresAt, row.tombstoneUntil);
    for (const { startedAt, settlesWithinMs } of row.intents) instants.push(startedAt + (settlesWithinMs ?? 0));
  }
  for (const { availableAt } of tables.messages.values()) instants.push(availableAt);
  for (const { expiresAt } of tables.deliveries.values()) instants.push(expiresAt);
  return instants.filter((atMs) => atMs !== null);
}
