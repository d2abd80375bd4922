import type { Clock } from "../../src/core/clock.ts";
import type { Random } from "../../src/core/random.ts";
import type { Store } from "../../src/core/store.ts";
import type { Backend, MakeBackend } from "./backend.ts";
import { seededRandom } from "./chance.ts";
import { digestOf, textOf } from "./digest.ts";
import type { Note, Outside, Process, Scene, Service, Step, Told, World, WorldTransaction } from "./world.ts";

/** What one execution of a schedule works on: processes, their pending steps, one clock, one store. */
export interface Stage {
  readonly world: World;
  readonly seed: string;
  readonly backend: Backend;
  readonly scene: Scene;
  readonly processes: Map<string, Member>;
  outside: Outside | null;
  nowMs: number;
  /** Registered, not taken: in the order in which they were. */
  pending: PendingStep[];
  /** Taken and not settled: they wait for a lock. In the order in which they were taken. */
  readonly blocked: Set<PendingStep>;
  /** Whose step runs now: the store's own chance is drawn from its stream. */
  performing: Member | null;
  taken: PendingStep | null;
  /** Steps that were taken before, waited for a lock, and were settled by the last one. */
  settled: PendingStep[];
  /** What the last step that was settled gave, for who looks on. */
  lastResult: unknown;
  readonly told: Told[];
  readonly notes: Note[];
}

/** One process on the stage. */
export interface Member extends Process {
  status: "running" | "paused" | "dead";
  pausedAtMs: number;
  /** What came to it while it was paused. */
  inbox: (() => void)[];
  timers: Timer[];
  /** A digest of everything that it was told, in order: its code is deterministic, so this is its state. */
  chain: string;
  readonly open: Set<OpenTransaction>;
  /** Attempts and tasks that have not ended. */
  active: number;
  service: Service;
}

/** A timer of one process, on the stage's clock. */
export interface Timer {
  readonly atMs: number;
  readonly fire: () => void;
}

/** A transaction that a process has open. */
export interface OpenTransaction {
  readonly session: { readonly tx: WorldTransaction };
  /** Rolls it back, as the server does where the connection is gone. */
  abort(): void;
  /** Its COMMIT, where that has been sent: it may still arrive when the process is dead. */
  commit: PendingStep | null;
}

/** A step that waits to be taken. */
export interface PendingStep {
  /** `null`: what it belonged to is gone, the step is still on its way. */
  owner: Member | null;
  readonly label: string;
  readonly ways: readonly StepWay[];
  readonly isLocal: boolean;
  readonly about: StepAbout;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** One thing that a step may do, and which budget it takes. */
export interface StepWay {
  readonly label: string;
  readonly costs: string | null;
  perform(): unknown;
}

/** What is known of a step besides its label. */
export interface StepAbout {
  readonly method: string | null;
  readonly id: string | null;
  readonly fence: string | null;
}

/** Where the store's clock begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);
/** The clocks of two processes have nothing to do with each other: code that compares them is found out. */
const CLOCK_GAP_MS = 1_000_003;
const NOTHING: StepAbout = { method: null, id: null, fence: null };

/** Makes an empty stage for one schedule of a world. */
export async function createStage(world: World, seed: string, makeBackend: MakeBackend): Promise<Stage> {
  const streams = new Map<string, Random>();
  const storeStream = (name: string) => {
    const stream = streams.get(name) ?? seededRandom(`${seed}:store:${name}`);
    streams.set(name, stream);
    return stream;
  };
  const random: Random = {
    bytes: (length) => storeStream(stage.performing?.name ?? "nobody").bytes(length),
    unit: () => 0.5,
  };
  const backend = await makeBackend({ nowMs: () => stage.nowMs, random });
  const stage: Stage = {
    world,
    seed,
    backend,
    scene: {
      nowMs: () => stage.nowMs,
      step: (process, step) => registerOwn(stage, process as Member, step),
      note: (process, kind, data) => void stage.notes.push({ process: process.name, kind, data }),
    },
    processes: new Map(),
    outside: null,
    nowMs: EPOCH_MS,
    pending: [],
    blocked: new Set(),
    performing: null,
    taken: null,
    settled: [],
    lastResult: undefined,
    told: [],
    notes: [],
  };
  stage.outside = world.outside?.(stage.scene) ?? null;
  return stage;
}

/** Makes a process that has no service and no store yet. */
export function createMember(stage: Stage, name: string, storeOf: (member: Member) => Store<WorldTransaction>): Member {
  const member: Member = {
    name,
    store: undefined as unknown as Store<WorldTransaction>,
    clock: clockOf(stage, () => member),
    random: seededRandom(`${stage.seed}:process:${name}`),
    status: "running",
    pausedAtMs: 0,
    inbox: [],
    timers: [],
    chain: "",
    open: new Set(),
    active: 0,
    service: {},
  };
  Object.assign(member, { store: storeOf(member) });
  stage.processes.set(name, member);
  return member;
}

function clockOf(stage: Stage, self: () => Member): Clock {
  const index = stage.processes.size;
  return {
    monotonicMs: () => stage.nowMs - EPOCH_MS + CLOCK_GAP_MS * index,
    after(ms, fire) {
      const member = self();
      const timer: Timer = { atMs: stage.nowMs + Math.max(0, ms), fire };
      member.timers.push(timer);
      return () => {
        member.timers = member.timers.filter((other) => other !== timer);
      };
    },
  };
}

function registerOwn<T>(stage: Stage, owner: Member, { label, ways, isLocal = false }: Step<T>): Promise<T> {
  const priced = ways.map((way) => ({ ...way, costs: way.costs === null ? null : `other:${way.costs}` }));
  return register(stage, { owner, label, ways: priced, isLocal, about: NOTHING }).settled as Promise<T>;
}

type NewStep = Pick<PendingStep, "owner" | "label" | "ways" | "isLocal" | "about">;

/** Registers a step. `settled` never settles where its process dies first. */
export function register(
  stage: Stage,
  step: NewStep,
): { readonly step: PendingStep; readonly settled: Promise<unknown> } {
  let made: PendingStep | undefined;
  const settled = new Promise<unknown>((resolve, reject) => {
    made = { ...step, resolve, reject };
  });
  const pending = made as PendingStep;
  // Code of a process that is dead may still run on to its next step, and no further.
  if (step.owner?.status !== "dead") stage.pending.push(pending);
  return { step: pending, settled };
}

/** Takes a step one way, and lets everything that follows from it come to rest. */
export async function take(stage: Stage, step: PendingStep, way: StepWay): Promise<void> {
  stage.pending = stage.pending.filter((other) => other !== step);
  stage.taken = step;
  stage.performing = step.owner;
  stage.blocked.add(step);
  const settle = (finish: () => void, result: unknown) => {
    stage.blocked.delete(step);
    if (stage.taken === step) stage.lastResult = result;
    else stage.settled.push(step);
    deliver(stage, step, `${step.label}=${textOf(result)}`, finish);
  };
  const run = async () => way.perform();
  run().then(
    (value) => settle(() => step.resolve(value), value),
    (error: unknown) => settle(() => step.reject(error), error),
  );
  await rest(stage);
  stage.performing = null;
}

/** Waits until nothing moves any more. */
export async function rest(stage: Stage): Promise<void> {
  await stage.backend.quiet(() => stage.blocked.size);
}

/** Hands a process what came for it: at once, when it wakes, or never. */
function deliver(stage: Stage, { owner }: PendingStep, what: string, finish: () => void): void {
  const arrive = () => {
    if (owner !== null) observe(stage, owner, what);
    finish();
  };
  if (owner === null || owner.status === "running") arrive();
  else if (owner.status === "paused") owner.inbox.push(arrive);
}

/** Notes in the state of a process that it was told something, now. */
export function observe(stage: Stage, member: Member, what: string): void {
  member.chain = digestOf(`${member.chain}|${stage.nowMs}|${what}`);
}

/** Ends a process: what it has open is rolled back; `spared`, whose COMMIT is under way, may still arrive. */
export async function kill(stage: Stage, member: Member, spared: OpenTransaction | null): Promise<void> {
  member.status = "dead";
  member.inbox = [];
  stage.pending = stage.pending.filter(({ owner }) => owner !== member);
  observe(stage, member, "dead");
  await stage.backend.cut(member.name, spared?.session.tx ?? null);
  for (const open of [...member.open]) if (open !== spared) open.abort();
  await rest(stage);
}

/** Stops a process: nothing of it runs, its timers do not fire. */
export function freeze(stage: Stage, member: Member): void {
  member.status = "paused";
  member.pausedAtMs = stage.nowMs;
}

/** Lets a process go on. Its timers that are due fire when they are chosen, or time moves on. */
export async function thaw(stage: Stage, member: Member): Promise<void> {
  member.status = "running";
  for (const arrive of member.inbox.splice(0)) arrive();
  await rest(stage);
}

/**
 * Ends an execution for good. Timers that are left are fired once more, so that the pauses of the code under test take
 * back what keeps this process alive; whatever that starts gets no further than its next step.
 */
export async function dispose(stage: Stage): Promise<void> {
  for (const member of stage.processes.values()) {
    if (member.status !== "dead") await kill(stage, member, null);
  }
  for (let round = 0; round < 3; round++) {
    const timers = [...stage.processes.values()].flatMap((member) => member.timers.splice(0));
    if (timers.length === 0) return;
    for (const { fire } of timers) fire();
    await rest(stage);
  }
}
