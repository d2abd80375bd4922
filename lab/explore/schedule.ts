import { UsageError } from "../support/command.ts";
import { digestOf } from "./digest.ts";

/** A schedule: the place of each choice among those that there were. */
export type Schedule = readonly number[];

/** A schedule that cannot be followed: the world has changed since, or does not do the same thing twice. */
export class Diverged extends Error {
  override readonly name = "Diverged";
}

/** A schedule as one word: its world, the seed, the choices, and a digest of what they were called. */
export function scheduleText(world: string, seed: string, schedule: Schedule, labels: readonly string[]): string {
  return [world, seed, schedule.map(placeText).join(""), labelsDigest(labels)].join(":");
}

/** What {@link scheduleText} made. Raises for anything else. */
export function parseSchedule(text: string): ParsedSchedule {
  const [world, seed, places, digest] = text.split(":");
  if (world === undefined || seed === undefined || places === undefined || digest === undefined) {
    throw new UsageError(`--replay takes what the explorer printed: world:seed:choices:digest. This is ${text}`);
  }
  const choices = places.match(/~\d+\.|[0-9a-z]/g) ?? [];
  return { world, seed, digest, schedule: choices.map(placeOf) };
}

/** A schedule with what it was explored in. */
export interface ParsedSchedule {
  readonly world: string;
  readonly seed: string;
  readonly schedule: Schedule;
  readonly digest: string;
}

/** A short digest of what the choices were called: where it differs, the schedule is of another world. */
export function labelsDigest(labels: readonly string[]): string {
  return Buffer.from(digestOf(labels.join("\n")), "base64")
    .toString("hex")
    .slice(0, 8);
}

/** A schedule as something to remember it by. */
export function scheduleDigest(schedule: Schedule): string {
  return digestOf(schedule.join(","));
}

const placeText = (place: number) => (place < 36 ? place.toString(36) : `~${place}.`);
const placeOf = (text: string) => (text.startsWith("~") ? Number(text.slice(1, -1)) : Number.parseInt(text, 36));
