import type { StoreLayout } from "../stores/postgres/index.ts";
import { alarming, bytes, duration } from "./layout.ts";

type Row = readonly [label: string, value: string];

/** The layout for people, in a line or two. */
export function layoutRows({ name, guarded, widthMs, retentionMs, behind, aheadUntil }: StoreLayout): Row[] {
  if (name === "plain") {
    return [["layout", guarded ? "plain; outcomes of before are in partitions until these are past" : "plain"]];
  }
  const ahead = aheadUntil === null ? "none ahead" : `ahead until ${aheadUntil.toISOString()}`;
  const said = behind ? alarming(`${ahead}: a worker whose role owns the tables must run`) : ahead;
  return [
    ["layout", `partitioned, ${duration(widthMs)} wide, for outcomes kept up to ${duration(retentionMs)}`],
    ["partitions", said],
  ];
}

/** Each partition, the one that is past first at the top. */
export function partitionRows({ partitions }: StoreLayout): Row[] {
  return partitions.map(({ name, from, to, state, bytes: size }) => {
    const text = `${from.toISOString()} to ${to.toISOString()}, ${state}, ${bytes(size)}`;
    return [name, state === "attached" ? text : alarming(text)];
  });
}
