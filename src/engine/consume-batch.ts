import { deliveryInvalid, type KnownDelivery } from "../core/delivery.ts";
import { type Session, StoreFailure } from "../core/store.ts";
import { withinTime } from "./abandon.ts";
import type { BatchStep, ConsumeOptions, ConsumeResult, IncomingDelivery, Unsettled } from "./arrival.ts";
import { type BatchItem, batchStep } from "./batch-step.ts";
import { type ConsumeRules, consumeRules } from "./consume-rules.ts";
import type { EngineContext } from "./context.ts";
import { arrivedDelivery } from "./delivery-step.ts";
import { isOurs, type Kept, keptValue, remembered } from "./remembered.ts";
import { sealDelivery } from "./stored-values.ts";
import { asOnlyOne, failedTry, inArrivalTransaction, leave, runsHere, settled, unsettled } from "./take-in.ts";

/** What is known of one delivery of the batch, by its digest; `done`: its handler ran here and is committed. */
type Fate = { readonly kind: "known"; readonly known: KnownDelivery } | { readonly kind: "done" } | Unsettled;

/** One batch's worth of work. `items` holds each delivery once. */
interface Batch<D> {
  readonly context: EngineContext;
  readonly rules: ConsumeRules;
  readonly items: ReadonlyMap<string, BatchItem<D>>;
  readonly fates: Map<string, Fate>;
  readonly handler: (step: BatchStep<unknown, D>) => Promise<void>;
}

/** Tries in which one of the batch was taken in elsewhere meanwhile, before we call it contention. */
const MOST_TRIES = 10;

/** Each takes a lock, and PostgreSQL has about 6,400 of them for all its transactions unless it is told otherwise. */
const MOST_DELIVERIES = 1_000;

/** Runs one handler for all new deliveries of a batch, in the one transaction that remembers them. */
export async function consumeBatch<D extends IncomingDelivery>(
  context: EngineContext,
  deliveries: readonly D[],
  handler: (step: BatchStep<unknown, D>) => Promise<void>,
  options: ConsumeOptions,
): Promise<readonly ConsumeResult<void>[]> {
  const rules = consumeRules(context, options);
  if (deliveries.length > MOST_DELIVERIES) throw deliveryInvalid(`a batch has at most ${MOST_DELIVERIES} of them`);
  const all = deliveries.map((given): BatchItem<D> => ({ ...arrivedDelivery(context, given), given }));
  const items = new Map<string, BatchItem<D>>();
  for (const item of all) if (!items.has(keyOf(item))) items.set(keyOf(item), item);
  const batch: Batch<D> = { context, rules, items, fates: new Map(), handler };
  for (let tried = 0; tried < MOST_TRIES && open(batch).length > 0; tried++) await tryOnce(batch);
  for (const item of open(batch)) batch.fates.set(keyOf(item), unsettled("contention"));
  return resultsOf(batch, all);
}

const keyOf = ({ digest }: { readonly digest: Uint8Array }): string => Buffer.from(digest).toString("hex");

/** The deliveries of which nothing is known yet. */
function open<D>({ items, fates }: Batch<D>): BatchItem<D>[] {
  return [...items.values()].filter((item) => !fates.has(keyOf(item)));
}

/** Looks, then takes in what is new. What another transaction was faster with is open again afterwards. */
async function tryOnce<D>(batch: Batch<D>): Promise<void> {
  const { context, fates } = batch;
  try {
    note(batch, await context.store.deliveries(open(batch).map(({ digest }) => digest)));
    for (const item of open(batch)) if (runsHere(context, item.digest)) fates.set(keyOf(item), unsettled("busy"));
    const digests = open(batch).map(({ digest }) => digest);
    if (digests.length > 0) await asOnlyOne(context, digests, () => take(batch));
  } catch (error) {
    const tried = failedTry(error);
    if (tried.kind !== "settled") return;
    for (const item of open(batch)) fates.set(keyOf(item), tried.result);
  }
}

function note<D>({ fates }: Batch<D>, known: readonly KnownDelivery[]): void {
  for (const one of known) fates.set(keyOf(one), { kind: "known", known: one });
}

/** What one transaction found and did. */
interface Taken<D> {
  readonly busy: readonly BatchItem<D>[];
  readonly known: readonly KnownDelivery[];
  readonly fresh: readonly BatchItem<D>[];
}

/** What the last run of the transaction found, and keeps of its deliveries. */
interface Made<D> {
  taken: Taken<D> | null;
  kept: Kept<void> | null;
}

async function take<D>(batch: Batch<D>): Promise<void> {
  const { context, fates } = batch;
  const made: Made<D> = { taken: null, kept: null };
  try {
    await inArrivalTransaction(context, (session) => takeIn(batch, session, made));
    for (const item of made.taken?.fresh ?? []) fates.set(keyOf(item), { kind: "done" });
  } catch (error) {
    if (error instanceof StoreFailure && error.kind === "commit_unknown") await afterLostCommit(batch, made);
    throw error;
  } finally {
    noteOthers(batch, made.taken);
  }
}

async function takeIn<D>(batch: Batch<D>, session: Session<unknown>, made: Made<D>): Promise<void> {
  const { context, rules, handler } = batch;
  made.taken = null;
  made.taken = await findFresh(batch, session);
  const [first, ...others] = made.taken.fresh;
  if (first === undefined) return leave(settled(undefined));
  const fresh = [first, ...others] as const;
  await withinTime(context, rules.maxDurationMs, (signal) => handler(batchStep(context, session, fresh, signal)));
  made.kept = keptValue(context, rules, undefined);
  const { bytes } = made.kept;
  const { rememberMs: keepMs } = rules;
  await session.accept(
    fresh.map(({ digest, delivery }) => ({ digest, delivery, value: sealDelivery(context, digest, bytes), keepMs })),
  );
}

function noteOthers<D>(batch: Batch<D>, taken: Taken<D> | null): void {
  note(batch, taken?.known ?? []);
  for (const item of taken?.busy ?? []) {
    if (!batch.fates.has(keyOf(item))) batch.fates.set(keyOf(item), unsettled("busy"));
  }
}

/** Takes the locks that are free, and looks again in a newer snapshot. */
async function findFresh<D>(batch: Batch<D>, session: Session<unknown>): Promise<Taken<D>> {
  const asked = open(batch);
  const answers = await session.tryLocks(
    asked.map(({ digest }) => digest),
    batch.rules.limits,
  );
  const held = asked.filter((_, index) => answers[index] === true);
  const busy = asked.filter((_, index) => answers[index] !== true);
  const known = held.length === 0 ? [] : await session.deliveries(held.map(({ digest }) => digest));
  const isKnown = new Set(known.map(keyOf));
  return { busy, known, fresh: held.filter((item) => !isKnown.has(keyOf(item))) };
}

/** Rows prove that deliveries are remembered, whoever did it; absent ones prove nothing. */
async function afterLostCommit<D>(batch: Batch<D>, { kept }: Made<D>): Promise<void> {
  const known = await batch.context.store.deliveries(open(batch).map(({ digest }) => digest)).catch(() => []);
  note(batch, known);
  for (const one of known) if (kept !== null && isOurs(one, kept)) batch.fates.set(keyOf(one), { kind: "done" });
}

/** One result a delivery, in their order. A second one of the same batch is a duplicate of the first. */
async function resultsOf<D>(batch: Batch<D>, all: readonly BatchItem<D>[]): Promise<ConsumeResult<void>[]> {
  const { context, rules, items, fates } = batch;
  const repeated = all.filter((item) => items.get(keyOf(item)) !== item && fates.get(keyOf(item))?.kind === "done");
  const seconds = new Map<string, KnownDelivery>();
  if (repeated.length > 0) {
    const known = await context.store.deliveries(repeated.map(({ digest }) => digest)).catch(() => []);
    for (const one of known) seconds.set(keyOf(one), one);
  }
  return all.map((item): ConsumeResult<void> => {
    const fate = fates.get(keyOf(item)) as Fate;
    if (fate.kind === "unsettled") return fate;
    const isFirst = items.get(keyOf(item)) === item;
    if (fate.kind === "done" && isFirst) return { kind: "done", value: undefined };
    const known = fate.kind === "known" ? fate.known : seconds.get(keyOf(item));
    // Its first occurrence is committed; only the time of that could not be read.
    return known === undefined ? unsettled("store_unavailable") : remembered<void>(context, known, rules, item);
  });
}
