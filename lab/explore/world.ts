import type { Clock } from "../../src/core/clock.ts";
import type { Random } from "../../src/core/random.ts";
import type { Store } from "../../src/core/store.ts";
import type { EntryRow } from "../../src/stores/memory/entry-row.ts";

/**
 * What a world is made of. A world is small: a few processes over one store, a few clients and workers, something outside,
 * budgets for what may go wrong, and what must hold. The explorer runs it again and again, each time in another order.
 *
 * Everything in a world must be deterministic: time is {@link Process.clock} and {@link Scene.nowMs}, chance is
 * {@link Process.random}, and whatever waits, waits for a step. Real timers and threads would escape the scheduler.
 */
export interface World {
  /** Short and stable: what `--world` takes. */
  readonly name: string;
  /** One sentence: what is tried here. */
  readonly about: string;
  /** The rows of the protocol's list that this world can reach when their guard is taken out; none: `[]`. */
  readonly covers: readonly string[];
  readonly budget: Partial<Budget>;
  /** Makes what is outside, once a schedule, before any process. Default: nothing. */
  readonly outside?: (scene: Scene) => Outside;
  /**
   * The processes in the order in which they are named, each with the code that it runs: another code is another release.
   * The last one is also what a fair continuation starts anew where every process is dead.
   */
  readonly processes: Readonly<Record<string, Deploy>>;
  readonly actors: readonly Actor[];
  readonly invariants: readonly Invariant[];
  /**
   * Whether a client that can get no final answer has been told the declared end (`needs_recovery`, waiting for a person),
   * asked where a fair continuation did not end. Gives what is wrong, or `null`. Default: it is wrong.
   */
  readonly declaredEnd?: (client: ClientActor, last: Answer | null, view: View) => string | null;
  /** How long a fair continuation may take on the store's clock, in milliseconds. Default 7,200,000 (two hours). */
  readonly progressWithinMs?: number;
}

/** Deploys one process: makes its instance over `process.store`, defines its operations, starts it. No step may be taken. */
export type Deploy = (process: Process, scene: Scene) => Promise<Service>;

/** What a process does for actors. */
export interface Service {
  /** One attempt of a client. A throw is the answer that a framework would make of it: no final one. */
  attempt?(request: unknown, about: AttemptAbout): Promise<Answer>;
  /** What workers do, by name: a sweeper's round, a purge, an operator's decision. What it gives is shown in schedules. */
  readonly tasks?: Readonly<Record<string, () => Promise<unknown>>>;
}

/** Which attempt of which client. */
export interface AttemptAbout {
  readonly client: string;
  /** From 1. */
  readonly attempt: number;
}

/** What one attempt was told. */
export interface Answer {
  /**
   * `final`: an outcome; every other final answer of the identity must be equal. `refused`: the key belongs to another
   * request. `gone`: carried out, its answer is not kept, or too late to say; nothing is run for it. `later`: come back with
   * the same key. `threw`: an error that is the application's.
   */
  readonly kind: "final" | "refused" | "gone" | "later" | "threw";
  /** Status and bytes of a final answer, as one text; else what kind of answer it was. Compared, and shown in schedules. */
  readonly text: string;
}

/** Who does something in a world. */
export type Actor = ClientActor | WorkerActor;

/** A client with one request, sent again until its answer is final or its attempts are over. */
export interface ClientActor {
  readonly kind: "client";
  readonly name: string;
  /** Handed to {@link Service.attempt} as it is. */
  readonly request: unknown;
  /** Clients of one identity have one text here. */
  readonly identity: string;
  /** Clients whose requests must be judged equal have one text here. */
  readonly payload: string;
  /** Which process each attempt goes to, the first one first; the list is repeated. Dead ones are skipped. */
  readonly via: readonly string[];
  /** Most attempts that are explored. A fair continuation makes more. */
  readonly attempts: number;
}

/** A worker: does a task of a process some times. */
export interface WorkerActor {
  readonly kind: "worker";
  readonly name: string;
  readonly on: string;
  readonly task: string;
  readonly rounds: number;
  /** Whether a fair continuation lets it go on (a sweeper does, a person does not). */
  readonly fair: boolean;
}

/** How often each thing may happen in one schedule; what is left out may not happen. */
export interface Budget {
  /** A process dies at any of its steps. What it had sent may arrive all the same. */
  readonly crashes: number;
  /** A process stops (nothing of it runs, its timers do not fire) and later goes on. */
  readonly pauses: number;
  /** A statement takes effect and its answer is lost: `unavailable`, for COMMIT `commit_unknown`. */
  readonly lost: number;
  /** A statement never arrives: `unavailable`, for COMMIT `commit_unknown`. */
  readonly refused: number;
  /** The connection is lost first; the statement applies at some later time, or never. */
  readonly adrift: number;
  /** Time moves on although something else could happen. (Where nothing else can, it moves by itself.) */
  readonly ticks: number;
  /** A client tries again before the attempt before was answered. */
  readonly impatience: number;
  /** Steps by which a schedule ends at the latest; a longer one is cut, and counted as cut. Default 400. */
  readonly steps: number;
  /** How long a process may be paused, in milliseconds of the store's clock. Default: as long as time goes on. */
  readonly longestPauseMs: number;
  /**
   * How far explored time may go from the beginning, in milliseconds. Beyond the retention of outcomes a key is free by
   * contract. Default 3,600,000 (one hour). A fair continuation has its own limit.
   */
  readonly untilMs: number;
  /** Further things that steps of the outside system, or of the world's own code, may do: see {@link Way.costs}. */
  readonly others: Readonly<Record<string, number>>;
}

/** What processes and the outside system are given to make their steps with. */
export interface Scene {
  /** The store's clock, in milliseconds since the epoch. Every process's own clock runs beside it. */
  nowMs(): number;
  /**
   * Registers a step of the process that runs now, and resolves with what its way gave. Nothing of it happens until the
   * scheduler picks it: this is where others may come in between. The first way is the ordinary one.
   */
  step<T>(process: Process, step: Step<T>): Promise<T>;
  /** Remembers something for the invariants (a handler ran, with which payload). Takes no step. */
  note(process: Process, kind: string, data: unknown): void;
}

/** Something that happens at one instant. */
export interface Step<T> {
  /** How schedules call it: `sends to the provider`. */
  readonly label: string;
  readonly ways: readonly Way<T>[];
  /**
   * Touches nothing that any other process, or the outside system, can see or change. It needs no orders of its own, so it
   * is taken at once (unless something may go wrong with it).
   */
  readonly isLocal?: boolean;
}

/** One of the things that a step may do. */
export interface Way<T> {
  /** How schedules call it: empty for the ordinary one, else `its answer is lost`. */
  readonly label: string;
  /** Which of {@link Budget.others} it takes; `null`: none. */
  readonly costs: string | null;
  /** Acts without waiting for any step, and gives the step's value or raises its error; must not wait for time. */
  perform(): T | Promise<T>;
}

/** One process of a world. Crashed, nothing that it still holds can run. */
export interface Process {
  readonly name: string;
  /** The store as this process sees it: every method, every statement of a transaction and every COMMIT is a step. */
  readonly store: Store<WorldTransaction>;
  /** For `createOncekey({ clock })`. */
  readonly clock: Clock;
  /** For `createOncekey({ random })`: a stream of its own. */
  readonly random: Random;
}

/** What business code of a world writes with, on every backend. */
export interface WorldTransaction {
  /** Adds a row to a table, which exists as soon as it is named. JSON only. */
  insert(table: string, row: object): Promise<void>;
  /** Committed rows and this transaction's own. */
  rows<Row extends object = Record<string, unknown>>(table: string): Promise<Row[]>;
}

/** What is outside: lives through crashes of everything else. */
export interface Outside {
  /** What happens there by itself (a call lands, an index catches up), as it could happen now. Each is a choice. */
  events(): readonly OutsideEvent[];
  /** Instants of the store's clock at which something changes there by itself (a window ends). May be in the past. */
  instants(): readonly number[];
  /** All that it is, as JSON: two equal states must go on equally. */
  state(): unknown;
}

/** Something that may happen outside, now or later or never. */
export interface OutsideEvent {
  /** Unique among those that are possible now: `the call k/1 lands`. */
  readonly label: string;
  readonly costs: string | null;
  /** Whether a fair continuation lets it happen. */
  readonly fair: boolean;
  perform(): void;
}

/** A rule that must hold after every step, or only where a schedule has ended. */
export interface Invariant {
  readonly name: string;
  readonly when: "always" | "end";
  /** What is wrong, or `null`. Must not change anything. */
  check(view: View): string | null;
}

/** What an invariant sees. */
export interface View {
  readonly nowMs: number;
  /** The step that was just taken; `null` at the beginning and where time moved. */
  readonly step: TakenStep | null;
  /** Steps that were taken earlier, waited for a row, and took effect with this one: it let the row go. */
  readonly alsoSettled: readonly TakenStep[];
  /** Committed entries by hex id, before that step and now. Rows are replaced, never changed. */
  readonly before: ReadonlyMap<string, EntryRow>;
  readonly entries: ReadonlyMap<string, EntryRow>;
  /** The committed business rows of a table, in the order of their commit. */
  rows<Row extends object = Record<string, unknown>>(table: string): readonly Row[];
  /** What was committed to the outbox. */
  readonly messages: readonly { readonly id: string; readonly topic: string }[];
  /** Deliveries that are remembered, by hex digest. */
  readonly deliveries: readonly string[];
  /** Everything that clients were told, in order. */
  readonly told: readonly Told[];
  /** Everything that {@link Scene.note} was given, in order. */
  readonly notes: readonly Note[];
  readonly outside: Outside | null;
  readonly actors: readonly Actor[];
}

/** The step that was just taken. */
export interface TakenStep {
  /** Whose it was; `null`: of the outside system, or a statement adrift whose sender is gone. */
  readonly process: string | null;
  readonly label: string;
  /** The port method: `recordPhase`, `session.complete`, `COMMIT`; `null` for steps of other kinds. */
  readonly method: string | null;
  /** Hex id and fence that the statement named; for COMMIT, those of its transaction's last fenced statement. */
  readonly id: string | null;
  readonly fence: string | null;
  /** The business rows that it committed. */
  readonly committed: readonly { readonly table: string; readonly row: object }[];
}

/** An answer that a client was told. */
export interface Told {
  readonly client: ClientActor;
  readonly attempt: number;
  readonly process: string;
  readonly answer: Answer;
}

/** What {@link Scene.note} was given. */
export interface Note {
  readonly process: string;
  readonly kind: string;
  readonly data: unknown;
}
