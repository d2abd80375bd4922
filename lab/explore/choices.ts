import { ask, type Cast, isServed, isWaiting, nextProcess, work } from "./actors.ts";
import { setAdrift } from "./gate-transaction.ts";
import { freeze, kill, type Member, type PendingStep, rest, type Stage, take, thaw } from "./stage.ts";
import { fireDue, isOverdue, latestMs, moveTo, nextInstants } from "./time.ts";
import type { OutsideEvent } from "./world.ts";

/** What is left of a world's budget, by what it pays for. */
export type Left = Readonly<Record<string, number>>;

/** One way to go on from where a schedule stands. */
export interface Choice {
  /** Unique among the choices of its state, and the same each time the schedule comes here. */
  readonly label: string;
  /** What it takes of the budget; `null`: nothing. */
  readonly costs: string | null;
  /** Whether it is the ordinary course of things: no fault, and no time that passes by. */
  readonly isPlain: boolean;
  act(): Promise<void>;
}

/** How choices are made up. */
export interface ChoiceRules {
  /** Whether steps that nobody else can see are taken at once, without alternatives. */
  readonly reduces: boolean;
}

/** All ways to go on; none: the schedule has ended. Those that the budget does not cover are left out. */
export function choicesOf(stage: Stage, cast: Cast, left: Left, { reduces }: ChoiceRules): Choice[] {
  const steps = stepChoices(stage);
  const affordable = (choice: Choice) => choice.costs === null || (left[choice.costs] ?? 0) > 0;
  if (reduces) {
    const local = stage.pending.find((step) => step.isLocal && isTakeable(step));
    const own = local === undefined ? [] : waysOf(stage, local).filter(affordable);
    if (own.length === 1) return own;
  }
  const plain = [...steps, ...actorChoices(stage, cast), ...outsideChoices(stage)].filter(affordable);
  const isIdle = !plain.some(({ isPlain }) => isPlain);
  const faults = [...timeChoices(stage, isIdle), ...memberChoices(stage)].filter(affordable);
  return distinct([...plain.filter(({ isPlain }) => isPlain), ...faults, ...plain.filter((one) => !one.isPlain)]);
}

/** What a sleeping process has sent is carried out all the same; it hears of it when it wakes. */
function isTakeable({ owner }: PendingStep): boolean {
  return owner?.status !== "dead";
}

function stepChoices(stage: Stage): Choice[] {
  return stage.pending.filter(isTakeable).flatMap((step) => waysOf(stage, step));
}

function waysOf(stage: Stage, step: PendingStep): Choice[] {
  const who = step.owner === null ? step.label : `${step.owner.name} ${step.label}`;
  return step.ways.map((way) => ({
    label: way.label === "" ? who : `${who}: ${way.label}`,
    costs: way.costs,
    isPlain: way.costs === null && step.owner?.status === "running",
    act: () => take(stage, step, way),
  }));
}

function actorChoices(stage: Stage, { clients, workers }: Cast): Choice[] {
  const asks = clients.flatMap((state): Choice[] => {
    const member = nextProcess(stage, state);
    if (isServed(state) || state.attempts >= state.actor.attempts || member === undefined) return [];
    const costs = isWaiting(state) ? "impatience" : null;
    const label = `${state.actor.name} asks ${member.name}${state.attempts === 0 ? "" : " again"}`;
    return [{ label, costs, isPlain: costs === null, act: () => ask(stage, state, member) }];
  });
  const works = workers.flatMap((state): Choice[] => {
    const member = stage.processes.get(state.actor.on);
    const isBusy = state.on !== null && state.on.status !== "dead";
    if (isBusy || state.rounds >= state.actor.rounds || member?.status !== "running") return [];
    const label = `${state.actor.name} works`;
    return [{ label, costs: null, isPlain: true, act: () => work(stage, state, member) }];
  });
  return [...asks, ...works];
}

function outsideChoices(stage: Stage): Choice[] {
  return (stage.outside?.events() ?? []).map((event) => ({
    label: event.label,
    costs: event.costs === null ? null : `other:${event.costs}`,
    isPlain: false,
    act: () => happen(stage, event),
  }));
}

/** Lets something happen outside. */
export async function happen(stage: Stage, event: OutsideEvent): Promise<void> {
  event.perform();
  await rest(stage);
}

/** Time moves by itself only where somebody waits for it and nothing else can happen. */
function timeChoices(stage: Stage, isIdle: boolean): Choice[] {
  const members = [...stage.processes.values()].filter(({ status }) => status === "running");
  const isAwaited = members.some(({ active }) => active > 0);
  const { anyMs, lastingMs } = nextInstants(stage);
  const endMs = latestMs(stage);
  const move = (label: string, toMs: number | null, costs: string | null): Choice[] =>
    toMs === null || toMs > endMs ? [] : [{ label, costs, isPlain: false, act: () => moveTo(stage, toMs) }];
  return [
    ...move(`time moves by ${(anyMs ?? 0) - stage.nowMs} ms`, anyMs, isIdle && isAwaited ? null : "ticks"),
    ...(lastingMs === anyMs ? [] : move(`time moves on by ${(lastingMs ?? 0) - stage.nowMs} ms`, lastingMs, "ticks")),
    ...members
      .filter((member) => isOverdue(stage, member))
      .map((member) => ({
        label: `${member.name}'s timers fire`,
        costs: null,
        isPlain: false,
        act: () => fireDue(stage, member),
      })),
  ];
}

function memberChoices(stage: Stage): Choice[] {
  return [...stage.processes.values()].flatMap((member): Choice[] => {
    if (member.status === "dead") return [];
    const { name } = member;
    const choice = (label: string, costs: string | null, act: () => Promise<void>): Choice => ({
      label: `${name} ${label}`,
      costs,
      isPlain: false,
      act,
    });
    if (member.status === "paused") return [choice("wakes", null, () => thaw(stage, member))];
    if (member.active === 0) return [];
    return [
      choice("crashes", "crashes", () => kill(stage, member, null)),
      ...[...member.open]
        .filter(({ commit }) => commit !== null && stage.pending.includes(commit))
        .map((open) => choice("crashes, its COMMIT under way", "crashes", () => killCommitting(stage, member, open))),
      choice("sleeps", "pauses", async () => freeze(stage, member)),
    ];
  });
}

async function killCommitting(stage: Stage, member: Member, open: Parameters<typeof setAdrift>[2]): Promise<void> {
  const { commit } = open;
  await kill(stage, member, open);
  if (commit !== null) setAdrift(stage, member, open, commit.about);
}

/** Two choices with one label are told apart by their order. */
function distinct(choices: readonly Choice[]): Choice[] {
  const seen = new Map<string, number>();
  return choices.map((choice) => {
    const count = (seen.get(choice.label) ?? 0) + 1;
    seen.set(choice.label, count);
    return count === 1 ? choice : { ...choice, label: `${choice.label} (${count})` };
  });
}
