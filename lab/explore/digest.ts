import { hash } from "node:crypto";

/** A value as text in which equal values are equal: bytes, dates, bigints, maps and errors included. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, plain) ?? "undefined";
}

/** Reads what `toJSON` of a date or buffer would have hidden: `this` is the holder, `value` what JSON made of it. */
function plain(this: unknown, key: string, value: unknown): unknown {
  const raw = (this as Record<string, unknown>)[key];
  if (raw instanceof Uint8Array) return `0x${Buffer.from(raw).toString("hex")}`;
  if (typeof raw === "bigint") return `${raw}n`;
  if (raw instanceof Map) return [...raw];
  if (raw instanceof Error) return `${raw.name}:${(raw as { kind?: unknown }).kind ?? ""}`;
  if (raw === undefined) return "undefined";
  return value;
}

/** A short digest of a text. Two different texts never have the same one, for what an exploration can see. */
export function digestOf(text: string): string {
  return hash("sha1", text, "base64");
}

const known = new WeakMap<object, string>();

/** The digest of a row that is never changed, only replaced: worked out once. */
export function rowDigest(row: object): string {
  const digest = known.get(row) ?? digestOf(textOf(row));
  known.set(row, digest);
  return digest;
}
