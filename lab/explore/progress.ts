import { ask, type ClientState, isServed, isWaiting, nextProcess, work } from "./actors.ts";
import { happen } from "./choices.ts";
import { deployProcess, type Execution, type Violation } from "./execution.ts";
import { type Member, rest, type Stage, take, thaw } from "./stage.ts";
import { moveTo, nextInstants } from "./time.ts";

const WITHIN_MS = 7_200_000;
/** A client that heard "later" comes back after so long, then after twice as long, and so on. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 120_000;
/** Turns without any time that a continuation may take. More is a loop that waits for nothing. */
const MOST_TURNS = 2_000;

/**
 * A fair continuation of a schedule that has ended: nothing more goes wrong, who sleeps wakes, what is on its way to the
 * store is lost for good, the outside system does what it owes, fair workers work, clients come back. Gives what is wrong
 * where a client gets neither a final answer nor the declared end, or an invariant breaks on the way.
 */
export async function continueFairly(execution: Execution): Promise<Violation | null> {
  const then: string[] = [];
  const found = await goOnFairly(execution, (what) => void then.push(what));
  return found === null ? null : { ...found, then };
}

async function goOnFairly(execution: Execution, told: (what: string) => void): Promise<Violation | null> {
  const { stage, cast } = execution;
  const endMs = stage.nowMs + (stage.world.progressWithinMs ?? WITHIN_MS);
  let pauseMs = FIRST_PAUSE_MS;
  let askAtMs = stage.nowMs;
  for (const member of stage.processes.values()) if (member.status === "paused") await thaw(stage, member);
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const broken = execution.violation(false);
    if (broken !== null) return broken;
    execution.mark();
    if (cast.clients.every(isServed)) return null;
    if (await settleOne(stage, told)) continue;
    if (stage.nowMs >= endMs) break;
    if (stage.nowMs >= askAtMs) {
      askAtMs = stage.nowMs + pauseMs;
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      if (await beginAll(execution, told)) continue;
    }
    await moveTo(stage, Math.min(askAtMs, nextInstants(stage).anyMs ?? askAtMs, endMs));
  }
  return unfinished(execution);
}

/** Takes one step that is pending, if there is one. */
async function settleOne(stage: Stage, told: (what: string) => void): Promise<boolean> {
  const event = stage.outside?.events().find(({ fair }) => fair);
  if (event !== undefined) {
    told(event.label);
    await happen(stage, event);
    return true;
  }
  const step = stage.pending[0];
  if (step === undefined) return false;
  // What nobody waits for any more has as its last way that it never arrives.
  const way = step.owner === null ? step.ways.at(-1) : step.ways[0];
  told(`${step.owner?.name ?? ""} ${step.label} ${way?.label ?? ""}`.trim());
  if (way !== undefined) await take(stage, step, way);
  return true;
}

async function beginAll(execution: Execution, told: (what: string) => void): Promise<boolean> {
  const { stage, cast } = execution;
  let begun = false;
  for (const state of cast.workers) {
    const isBusy = state.on !== null && state.on.status !== "dead";
    if (!state.actor.fair || isBusy) continue;
    const member = alive(stage.processes.get(state.actor.on)) ?? (await spare(stage));
    told(`${state.actor.name} works`);
    await work(stage, state, member);
    begun = true;
  }
  for (const state of cast.clients) {
    if (isServed(state) || isWaiting(state)) continue;
    const member = nextProcess(stage, state) ?? (await spare(stage));
    told(`${state.actor.name} asks ${member.name}`);
    await ask(stage, state, member);
    begun = true;
  }
  await rest(stage);
  return begun;
}

const alive = (member: Member | undefined) => (member?.status === "running" ? member : undefined);

/** A process that was started after everything went wrong: of the newest code. */
async function spare(stage: Stage): Promise<Member> {
  const running = [...stage.processes.values()].find((member) => member.name.startsWith("new") && alive(member));
  if (running !== undefined) return running;
  const [, deploy] = Object.entries(stage.world.processes).at(-1) ?? [];
  if (deploy === undefined) throw new Error(`${stage.world.name} has no process.`);
  return deployProcess(stage, `new ${stage.processes.size}`, deploy);
}

function unfinished(execution: Execution): Violation | null {
  const { stage, cast } = execution;
  const view = execution.view();
  const wrong = cast.clients.filter((state) => !isServed(state)).map((state) => told(state, stage, view));
  const found = wrong.find((text) => text !== null);
  return found === undefined ? null : { invariant: "a fair continuation ends", found: found as string };
}

function told({ actor, last }: ClientState, stage: Stage, view: ReturnType<Execution["view"]>): string | null {
  const { declaredEnd } = stage.world;
  if (declaredEnd !== undefined) return declaredEnd(actor, last, view);
  return `${actor.name} was told ${last === null ? "nothing" : `${last.kind} (${last.text})`}`;
}
