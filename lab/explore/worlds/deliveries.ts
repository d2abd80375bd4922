import { COMMON, messagesGoWithRows, onceInside, successHasEffect } from "../invariants.ts";
import type { Invariant, World } from "../world.ts";
import { arrivals } from "./arrivals.ts";
import { client } from "./cast.ts";

const RULES: readonly Invariant[] = [
  onceInside(),
  successHasEffect({ phases: ["message"] }),
  messagesGoWithRows,
  ...COMMON,
];

const QUEUES = [client("Queue", { attempts: 3 }), client("Again", { via: ["B", "A"], attempts: 2 })];

/** Worlds of the inbox: a client is a queue that delivers until it is acknowledged. */
export const deliveryWorlds: readonly World[] = (["acknowledge", "replay"] as const).map((onDuplicate) => ({
  name: `delivery-${onDuplicate}`,
  about: `one message is delivered to two consumers, and again; a duplicate gets: ${onDuplicate}`,
  covers: [],
  budget: { crashes: 1, adrift: 1, lost: 1, impatience: 1 },
  processes: { A: arrivals({ onDuplicate }), B: arrivals({ onDuplicate }) },
  actors: onDuplicate === "replay" ? QUEUES : [client("Queue", { attempts: 3 })],
  invariants: RULES,
}));
