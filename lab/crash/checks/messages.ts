import type { Evidence } from "../evidence.ts";
import type { Invariant } from "./invariant.ts";
import { grouped } from "./view.ts";

const TOPICS = { invoice: "invoice.created", charge: "charge.settled" } as const;

/** What was told to the world: all that was committed, under one id, and nothing else. */
export function checkMessages({ effects, messages, deliveries }: Evidence): Invariant[] {
  const announced = effects.filter(
    ({ what, status }) => what === "invoice" || (what === "charge" && status === "succeeded"),
  );
  const known = new Map(announced.map(({ id, what }) => [id, what === "invoice" ? TOPICS.invoice : TOPICS.charge]));
  const byEffect = grouped(deliveries, ({ about }) => about);
  const ids = new Set(messages.map(({ id }) => id));
  return [
    {
      name: "every message of a committed invoice or charge was delivered",
      looked: announced.length,
      wrong: announced.filter(({ id }) => !byEffect.has(id)).map(({ what, id, key }) => ({ what, id, key })),
    },
    {
      name: "nothing was delivered of what was rolled back",
      looked: deliveries.length,
      wrong: deliveries.filter(({ about, topic, id }) => known.get(about) !== topic || !ids.has(id)),
    },
    {
      name: "one message for each effect, under one id over all its deliveries",
      looked: byEffect.size,
      wrong: [...byEffect].filter(([, all]) => new Set(all.map(({ id }) => id)).size > 1),
    },
    {
      name: "no message is left, and none is dead",
      looked: messages.length,
      wrong: messages.filter(({ state }) => state !== "delivered"),
    },
  ];
}
