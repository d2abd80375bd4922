import { type Cast, createCast } from "./actors.ts";
import type { MakeBackend } from "./backend.ts";
import { type Choice, type ChoiceRules, choicesOf, type Left } from "./choices.ts";
import { gatedStore } from "./gate.ts";
import { createMember, createStage, dispose, type Member, rest, type Stage } from "./stage.ts";
import { type Committed, committedNow, stateDigest, viewOf } from "./view.ts";
import type { Deploy, View, World } from "./world.ts";

/** What executions of one exploration have in common. */
export interface ExecutionTerms extends ChoiceRules {
  readonly world: World;
  /** Decides fences and seeds of entries; two executions with one seed and one schedule are the same. */
  readonly seed: string;
  readonly backend: MakeBackend;
}

/** One schedule, as far as it has gone. */
export interface Execution {
  readonly stage: Stage;
  readonly cast: Cast;
  /** What is left of the budget. */
  readonly left: Left;
  /** The choices that there are now; none: it has ended. */
  choices(): readonly Choice[];
  /** Goes on with one of them. */
  take(choice: Choice): Promise<void>;
  /** Forgets the step before: what is committed now is what the next one is compared with. For steps not taken here. */
  mark(): void;
  /** The digest of where it stands. */
  digest(): string;
  /** What is wrong after the last step, or `null`. `atEnd`: also what must only hold there. */
  violation(atEnd: boolean): Violation | null;
  view(): View;
  /** Gives everything back. */
  end(): Promise<void>;
}

/** A rule that did not hold. */
export interface Violation {
  readonly invariant: string;
  readonly found: string;
  /** What a fair continuation did until then, where the schedule itself broke nothing. */
  readonly then?: readonly string[];
}

const STEPS = 400;
const BUDGETS = ["crashes", "pauses", "lost", "refused", "adrift", "ticks", "impatience"] as const;

/** Most steps of a schedule of the world; a longer one is cut. */
export function longestOf({ budget }: World): number {
  return budget.steps ?? STEPS;
}

/** A world's whole budget. */
function budgetOf({ budget }: World): Left {
  const own = BUDGETS.map((name) => [name, budget[name] ?? 0] as const);
  const others = Object.entries(budget.others ?? {}).map(([name, count]) => [`other:${name}`, count] as const);
  return Object.fromEntries([...own, ...others]);
}

/** Begins a schedule: deploys every process, and waits until all of it is at rest. */
export async function beginExecution(terms: ExecutionTerms): Promise<Execution> {
  const { world, seed, backend } = terms;
  const stage = await createStage(world, seed, backend);
  await stage.backend.moved();
  for (const [name, deploy] of Object.entries(world.processes)) await deployProcess(stage, name, deploy);
  await rest(stage);
  const cast = createCast(stage);
  let left = budgetOf(world);
  let before: Committed = committedNow(stage);
  const mark = () => {
    before = committedNow(stage);
    stage.taken = null;
    stage.settled = [];
  };
  return {
    stage,
    cast,
    get left() {
      return left;
    },
    choices: () => choicesOf(stage, cast, left, terms),
    async take(choice) {
      mark();
      if (choice.costs !== null) left = { ...left, [choice.costs]: (left[choice.costs] ?? 0) - 1 };
      await choice.act();
    },
    mark,
    digest: () => stateDigest(stage, cast),
    violation: (atEnd) => violationOf(viewOf(stage, before), world, atEnd),
    view: () => viewOf(stage, before),
    end: () => dispose(stage),
  };
}

/** Starts a process on the stage. Raises where its start takes a step: nothing could let that go on. */
export async function deployProcess(stage: Stage, name: string, deploy: Deploy): Promise<Member> {
  const member = createMember(stage, name, (own) => gatedStore(stage, stage.backend.connect(name))(own));
  const waiting = stage.pending.length;
  let isDeployed = false;
  const deployed = deploy(member, stage.scene).then((service) => {
    member.service = service;
    isDeployed = true;
  });
  for (let turn = 0; turn < 100 && !isDeployed && stage.pending.length === waiting; turn++) await rest(stage);
  if (stage.pending.length > waiting) throw new Error(`${stage.world.name}: deploying ${name} takes a step.`);
  await deployed;
  return member;
}

function violationOf(view: View, { invariants }: World, atEnd: boolean): Violation | null {
  for (const { name, when, check } of invariants) {
    if (when === "end" && !atEnd) continue;
    const found = check(view);
    if (found !== null) return { invariant: name, found };
  }
  return null;
}
