import { type Member, observe, rest, type Stage } from "./stage.ts";
import type { Answer, ClientActor, WorkerActor } from "./world.ts";

/** How far a client has come. */
export interface ClientState {
  readonly actor: ClientActor;
  /** Attempts begun. */
  attempts: number;
  /** The process that has its last attempt; `null`: answered, or that process is dead. */
  asked: Member | null;
  last: Answer | null;
}

/** How far a worker has come. */
export interface WorkerState {
  readonly actor: WorkerActor;
  rounds: number;
  on: Member | null;
}

/** All actors of a schedule. */
export interface Cast {
  readonly clients: readonly ClientState[];
  readonly workers: readonly WorkerState[];
}

/** Everybody, at the beginning. */
export function createCast(stage: Stage): Cast {
  const { actors } = stage.world;
  return {
    clients: actors
      .filter((actor) => actor.kind === "client")
      .map((actor) => ({ actor, attempts: 0, asked: null, last: null })),
    workers: actors.filter((actor) => actor.kind === "worker").map((actor) => ({ actor, rounds: 0, on: null })),
  };
}

/** Whether a client has what it wanted to know, and asks no more. */
export function isServed({ last }: ClientState): boolean {
  return last !== null && last.kind !== "later" && last.kind !== "threw";
}

/** Whether a client waits for an answer that can still come. */
export function isWaiting({ asked }: ClientState): boolean {
  return asked !== null && asked.status !== "dead";
}

/** The process that a client's next attempt goes to, or `undefined`: none of its own can take it. */
export function nextProcess(stage: Stage, { actor, attempts }: ClientState): Member | undefined {
  const { via } = actor;
  const turned = via.map((_, index) => via[(attempts + index) % via.length] as string);
  return turned.map((name) => stage.processes.get(name)).find((member) => member?.status === "running");
}

/** Begins an attempt of a client at a process. */
export async function ask(stage: Stage, state: ClientState, member: Member): Promise<void> {
  const attempt = ++state.attempts;
  state.asked = member;
  member.active++;
  observe(stage, member, `${state.actor.name} asks ${attempt}`);
  const about = { client: state.actor.name, attempt };
  const answer = async () => {
    if (member.service.attempt === undefined) throw new Error(`${member.name} takes no requests.`);
    return member.service.attempt(state.actor.request, about);
  };
  void answer()
    .catch((error: unknown): Answer => ({ kind: "threw", text: nameOf(error) }))
    .then((told) => {
      // A dead process's code may run on for an instant: nobody hears it.
      if (member.status === "dead") return;
      member.active--;
      stage.told.push({ client: state.actor, attempt, process: member.name, answer: told });
      if (state.attempts === attempt) state.asked = null;
      if (!isServed(state)) state.last = told;
    });
  await rest(stage);
}

/** Begins a round of a worker. */
export async function work(stage: Stage, state: WorkerState, member: Member): Promise<void> {
  state.rounds++;
  state.on = member;
  member.active++;
  observe(stage, member, `${state.actor.name} works ${state.rounds}`);
  const round = async () => {
    const task = member.service.tasks?.[state.actor.task];
    if (task === undefined) throw new Error(`${member.name} has no task ${state.actor.task}.`);
    await task();
  };
  void round()
    .catch((error: unknown) => stage.scene.note(member, "task failed", nameOf(error)))
    .then(() => {
      if (member.status === "dead") return;
      member.active--;
      state.on = null;
    });
  await rest(stage);
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { kind, code } = error as { kind?: unknown; code?: unknown };
  return [error.name, kind ?? code].filter((part) => typeof part === "string").join(" ");
}
