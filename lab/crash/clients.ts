/** The fleet of clients, in a process of its own that may be killed at any moment. */

import { randomOf } from "../support/random.ts";
import { openHistory } from "./history.ts";
import { keptClients, keptLane } from "./kept-lane.ts";
import { orderBook } from "./orders.ts";
import { rawLane } from "./raw-lane.ts";

/** What the process is told by `LAB_CLIENTS`. */
export interface ClientSettings {
  readonly front: string;
  /** Where histories and submissions are kept. */
  readonly dir: string;
  readonly seed: number;
  /** Counts the lives of this process from 1: no amount and no number of an exchange comes twice. */
  readonly life: number;
  readonly keptLanes: number;
  readonly rawLanes: number;
}

const settings = JSON.parse(process.env.LAB_CLIENTS ?? "{}") as ClientSettings;
const { front, dir, seed, life, keptLanes, rawLanes } = settings;
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());

const history = openHistory(`${dir}/history-${life}.jsonl`, `life-${life}`);
const book = orderBook(randomOf(seed, "orders", life), life);
const partsOf = (lane: string) => {
  return { front, history, book, random: randomOf(seed, lane, life), stopping: stop.signal };
};
const clients = keptClients(`${dir}/submissions`, history);
console.log(`oncekey lab clients ready ${JSON.stringify({ life, pid: process.pid })}`);
await Promise.all([
  // What a life before this one has left.
  ...[...clients.values()].map((client) => client.resume()),
  ...Array.from({ length: keptLanes }, (_, lane) => keptLane(clients, partsOf(`kept-${lane}`))),
  ...Array.from({ length: rawLanes }, (_, lane) => rawLane(partsOf(`raw-${lane}`))),
]);
history.close();
process.exit(0);
