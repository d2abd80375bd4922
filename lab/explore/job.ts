import { UsageError } from "../support/command.ts";
import type { ExecutionTerms } from "./execution.ts";
import { memoryBackend } from "./memory.ts";
import { createExploration, type Exploration, type Explored } from "./search.ts";
import { type Shortened, shorten } from "./shorten.ts";
import type { World } from "./world.ts";
import { worlds } from "./worlds/index.ts";

/** What one child is told to do: take a world further. */
export interface Job {
  readonly world: string;
  readonly seed: string;
  /** Schedules in all. */
  readonly schedules: number;
}

/** What came of it. */
export interface JobDone {
  readonly explored: Explored;
  readonly shortened: Shortened | null;
}

const SHORTEN = { executions: 30_000, withinMs: 90_000 };

/** A world by its name. Raises for one that there is not. */
export function worldNamed(name: string): World {
  const world = worlds.find((one) => one.name === name);
  if (world === undefined)
    throw new UsageError(`There is no world ${name}; there are ${worlds.map((one) => one.name).join(", ")}.`);
  return world;
}

/** What executions of a world on the memory store take. */
export function memoryTerms(world: World, seed: string): ExecutionTerms {
  return { world, seed, backend: memoryBackend, reduces: true };
}

const explorations = new Map<string, Exploration>();

/** Takes a world further, and finds the shortest schedule where something is wrong. */
export async function doJob({ world, seed, schedules }: Job): Promise<JobDone> {
  const terms = memoryTerms(worldNamed(world), seed);
  const exploration = explorations.get(world) ?? createExploration(terms);
  explorations.set(world, exploration);
  const explored = await exploration.until(schedules);
  const shortened = explored.found === null ? null : await shorten(terms, explored.found, SHORTEN);
  return { explored, shortened };
}
