import type { Choice } from "../choices.ts";
import { beginExecution, type Execution, longestOf } from "../execution.ts";
import { memoryBackend } from "../memory.ts";
import type { World } from "../world.ts";
import { type PostgresBackend, postgresBackend } from "./backend.ts";
import { type Comparable, comparable } from "./compare.ts";
import { CLOCK_SCHEMA, type House, sweepHouse } from "./house.ts";

/** What driving one schedule on both stores came to. */
export interface Driven {
  readonly world: string;
  readonly labels: readonly string[];
  /** Times that a statement waited for a lock, on both sides. */
  readonly waits: number;
  /** Outcomes that lay in partitions at the end. */
  readonly apart: number;
  /** Where the two differ first, or `null`. */
  readonly difference: string | null;
}

interface Side {
  readonly execution: Execution;
  readonly values: Comparable;
}

/**
 * Drives one schedule on the memory store and on PostgreSQL, step by step: the same choice on both, and after each the same
 * result, the same answers told, the same steps pending and the same ones waiting for a lock; at the end the same content.
 */
export async function driveBoth(
  house: House,
  world: World,
  seed: string,
  pick: (choices: readonly Choice[]) => number,
): Promise<Driven> {
  await sweepHouse(house);
  const terms = { world, seed, reduces: true };
  const memory: Side = { execution: await beginExecution({ ...terms, backend: memoryBackend }), values: comparable() };
  const tables = memory.execution.stage.backend.tables;
  if (tables === null) throw new Error("The memory store has tables.");
  const backend = postgresBackend(house, () => tables);
  const real: Side = { execution: await beginExecution({ ...terms, backend }), values: comparable() };
  const labels: string[] = [];
  try {
    const driven = await drive(house, memory, real, labels, pick);
    return { world: world.name, labels, ...driven, apart: await outcomesApart(house) };
  } finally {
    await memory.execution.end();
    await real.execution.end();
    await (real.execution.stage.backend as PostgresBackend).close();
  }
}

async function drive(
  house: House,
  memory: Side,
  real: Side,
  labels: string[],
  pick: (choices: readonly Choice[]) => number,
): Promise<Pick<Driven, "waits" | "difference">> {
  let waits = 0;
  while (labels.length < longestOf(memory.execution.stage.world)) {
    const choices = memory.execution.choices();
    const others = real.execution.choices();
    const difference = differs("choices", names(choices), names(others));
    if (difference !== null) return { waits, difference };
    const open = memory.execution.stage.blocked.size === 0 ? choices : choices.filter(({ label }) => !movesTime(label));
    const choice = open[pick(open)];
    if (choice === undefined) return { waits, difference: await contentDiffers(house, memory, real) };
    labels.push(choice.label);
    const same = others.find(({ label }) => label === choice.label) as Choice;
    for (const { execution } of [memory, real]) execution.stage.lastResult = undefined;
    await memory.execution.take(choice);
    await real.execution.take(same);
    waits += memory.execution.stage.blocked.size > 0 ? 1 : 0;
    const after = stepDiffers(memory, real);
    if (after !== null) return { waits, difference: `after "${choice.label}": ${after}` };
  }
  return { waits, difference: null };
}

/**
 * While a statement waits for a lock, time stands still: PostgreSQL reads the clock for an update before it waits for the
 * row, the memory store after. The store's lock time-outs bound what that can differ by, and are not modelled.
 */
const movesTime = (label: string) => label.startsWith("time moves");

const names = (choices: readonly Choice[]) => choices.map(({ label }) => label).sort();

function stepDiffers(memory: Side, real: Side): string | null {
  const [one, other] = [memory.execution.stage, real.execution.stage];
  const waiting = ({ execution: { stage } }: Side) => [...stage.blocked].map(({ label }) => label).sort();
  return (
    differs("waiting for a lock", waiting(memory), waiting(real)) ??
    differs("result", memory.values.text(one.lastResult), real.values.text(other.lastResult)) ??
    differs("told", memory.values.text(one.told.map(toldOf)), real.values.text(other.told.map(toldOf)))
  );
}

const toldOf = ({ client, attempt, answer }: Execution["stage"]["told"][number]) => [client.name, attempt, answer];

function differs(what: string, memory: unknown, real: unknown): string | null {
  const [one, other] = [JSON.stringify(memory), JSON.stringify(real)];
  return one === other ? null : `${what}: memory ${one}, PostgreSQL ${other}`;
}

/** Entries with what is recorded for them, as both stores read them, and the business rows. */
async function contentDiffers(house: House, memory: Side, real: Side): Promise<string | null> {
  const tables = memory.execution.stage.backend.tables;
  const ids = [...(tables?.entries.values() ?? [])].map(({ id }) => id);
  const content = async ({ execution, values }: Side) => {
    const store = execution.stage.backend.connect("observer");
    const known = [];
    for (const id of ids) known.push([await store.read(id), await store.journal(id)]);
    return values.text(known);
  };
  const rows = [...(tables?.business ?? [])].flatMap(([table, own]) => own.map((row) => [table, row]));
  const sorted = (all: readonly unknown[]) => all.map((row) => comparable().text(row)).sort();
  return (
    differs("entries", await content(memory), await content(real)) ??
    differs("business rows", sorted(rows), sorted(await businessRows(house)))
  );
}

async function outcomesApart({ observer }: House): Promise<number> {
  const { rows } = await observer.query<{ apart: number }>("SELECT count(*)::int AS apart FROM oncekey.outcome");
  return rows[0]?.apart ?? 0;
}

async function businessRows({ observer }: House): Promise<unknown[]> {
  const { rows } = await observer.query(`SELECT name, content FROM ${CLOCK_SCHEMA}.business ORDER BY place`);
  return rows.map(({ name, content }) => [name, content]);
}
