import { createSweeper } from "oncekey/sweeper";
import type { Service } from "../world.ts";
import type { instance } from "./cast.ts";

/** The work of a sweeper on an instance: `sweep` does a whole round. */
export function sweepTasks(once: ReturnType<typeof instance>): NonNullable<Service["tasks"]> {
  const sweeper = createSweeper(once, { parallel: 1 });
  return { sweep: () => sweeper.runOnce() };
}
