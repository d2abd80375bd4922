import type pg from "pg";
import { type Check, check, equalCheck } from "./check.ts";
import type { Sent } from "./outbox-sender.ts";

/** An effect at the consumer, in the order of its making: the first delivery of its message that counted. */
interface Effect {
  readonly id: string;
  readonly n: number;
  readonly order_by: string | null;
  readonly place: number | null;
}

/** Where the two sides keep what happened. */
export interface CheckedWorld {
  readonly sender: pg.Pool;
  readonly sink: pg.Pool | pg.PoolClient;
  readonly sent: Sent;
  readonly poisonedOrder: string;
}

/** All that must hold once everything that can be delivered is. */
export async function checkDeliveries(world: CheckedWorld): Promise<Check[]> {
  const { sent, poisonedOrder } = world;
  const effects = await effectsOf(world);
  const healthy = sent.committed.filter(({ orderBy }) => orderBy !== poisonedOrder);
  const made = new Map<number, number>();
  for (const { n } of effects) made.set(n, (made.get(n) ?? 0) + 1);
  return [
    check(
      "every committed message was delivered",
      healthy.filter(({ n }) => !made.has(n)),
    ),
    check(
      "no message had two effects",
      [...made].filter(([, count]) => count !== 1),
    ),
    equalCheck("the effects are exactly the committed messages", effects.length, healthy.length),
    check("nothing of a transaction that was rolled back was ever delivered", await rolledBackArrivals(world)),
    check("every message kept one id over all its deliveries", await unstableIds(world)),
    check(
      "first deliveries came in the order of the commits, for each orderBy",
      outOfOrder(effects, await orders(world)),
    ),
    check("first deliveries came in the order of the sender's own lanes", outOfPlace(effects)),
    check(
      "nothing behind the poison message was delivered",
      effects.filter(({ order_by }) => order_by === poisonedOrder),
    ),
  ];
}

/** What was made of the poisoned order once its first message was discarded. */
export async function checkPoisonedOrder(world: CheckedWorld): Promise<Check> {
  const places = (await effectsOf(world)).filter((one) => one.order_by === world.poisonedOrder).map((one) => one.place);
  const expected = world.sent.committed
    .filter(({ orderBy, place }) => orderBy === world.poisonedOrder && place !== 0)
    .map(({ place }) => place);
  const name = "once the poison message was discarded, the rest of its order followed, in order";
  return equalCheck(name, JSON.stringify(places), JSON.stringify(expected));
}

async function effectsOf({ sink }: CheckedWorld): Promise<Effect[]> {
  return (await sink.query<Effect>("SELECT id, n, order_by, place FROM effect ORDER BY seq")).rows;
}

async function rolledBackArrivals({ sink }: CheckedWorld): Promise<unknown[]> {
  return (await sink.query("SELECT n FROM arrival WHERE rolled_back")).rows;
}

/** One n must have one id; and that id must be its outbox row's. */
async function unstableIds({ sender, sink }: CheckedWorld): Promise<unknown[]> {
  const arrived = await sink.query<{ n: number; ids: string[] }>(
    "SELECT n, array_agg(DISTINCT id) AS ids FROM arrival GROUP BY n",
  );
  const rows = await sender.query<{ n: number; id: string }>(
    "SELECT (payload::json ->> 'n')::int AS n, id FROM oncekey.outbox",
  );
  const ids = new Map(rows.rows.map(({ n, id }) => [n, id]));
  return arrived.rows.filter((one) => one.ids.length !== 1 || one.ids[0] !== ids.get(one.n));
}

/** The ids of each order, by their place in the outbox. */
async function orders({ sender }: CheckedWorld): Promise<Map<string, string[]>> {
  const { rows } = await sender.query<{ order_by: string; ids: string[] }>(
    "SELECT order_by, array_agg(id ORDER BY seq) AS ids FROM oncekey.outbox WHERE order_by IS NOT NULL GROUP BY tenant, order_by",
  );
  return new Map(rows.map(({ order_by, ids }) => [order_by, ids]));
}

function outOfOrder(effects: readonly Effect[], expected: ReadonlyMap<string, readonly string[]>): unknown[] {
  const places = new Map([...expected.values()].flatMap((ids) => ids.map((id, place) => [id, place] as const)));
  return descents(effects, ({ id }) => places.get(id) ?? -1);
}

function outOfPlace(effects: readonly Effect[]): unknown[] {
  return descents(
    effects.filter(({ place }) => place !== null),
    ({ place }) => place ?? -1,
  );
}

/** Effects whose number is not above that of the one before them in their order. */
function descents(effects: readonly Effect[], numberOf: (effect: Effect) => number): unknown[] {
  const last = new Map<string, number>();
  return effects.filter((effect) => {
    if (effect.order_by === null) return false;
    const before = last.get(effect.order_by) ?? -1;
    last.set(effect.order_by, numberOf(effect));
    return numberOf(effect) <= before;
  });
}
