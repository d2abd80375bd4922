import { styleText } from "node:util";

/** Control, format and separator characters: stored text must not steer the operator's terminal or reorder a line. */
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Stored text made safe to print: what would steer a terminal becomes `\u{…}`. */
export function visible(text: string): string {
  return text.replace(STEERING, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** JSON for programs; control characters that JSON leaves as they are (C1, DEL) are escaped too. */
export function jsonText(data: unknown): string {
  const text = JSON.stringify(data, null, 2);
  return `${text.replace(/[\p{Cc}\p{Cf}]/gu, (found) => (found === "\n" ? found : unicodeEscape(found)))}\n`;
}

function unicodeEscape(text: string): string {
  const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Lines of label and value, the values below one another. A value of several lines stays in its column. */
export function aligned(rows: readonly (readonly [label: string, value: string])[], indent = ""): string {
  const width = Math.max(0, ...rows.map(([label]) => label.length)) + 2;
  const below = `\n${indent}${" ".repeat(width)}`;
  return rows
    .map(([label, value]) => `${indent}${label.padEnd(width)}${value.replaceAll("\n", below)}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}

/** Draws attention on a terminal; plain where the output goes elsewhere or NO_COLOR is set (no-color.org). */
export function alarming(text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? styleText("yellow", text) : text;
}

/** `1 entry`, `1,200 entries`. */
export function counted(count: number, one: string, many: string): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Digits in groups of three. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}

const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** A duration in its two largest units: `2 h 5 min`; below a second `420 ms`. */
export function duration(ms: number): string {
  const largest = UNITS.findIndex(([, unit]) => ms >= unit);
  const [name, unit] = UNITS[largest] ?? [];
  if (name === undefined || unit === undefined) return `${Math.max(0, Math.round(ms))} ms`;
  const [nextName, nextUnit] = UNITS[largest + 1] ?? ["", Infinity];
  const rest = Math.floor((ms % unit) / nextUnit);
  return `${Math.floor(ms / unit)} ${name}${rest > 0 ? ` ${rest} ${nextName}` : ""}`;
}

/** Bytes in the largest binary unit that leaves at least one. */
export function bytes(count: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, count < 1 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 ? grouped(count) : value.toFixed(1)} ${units[power]}`;
}
