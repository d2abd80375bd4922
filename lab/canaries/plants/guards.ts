import { guards } from "../../explore/worlds/guards.ts";
import type { Canary } from "../canary.ts";

/** The guards of the protocol that the explorer's worlds watch over, each taken out. */
export const GUARDS: readonly Canary[] = guards.map(({ id, guard, world, file, find, replace }) => ({
  id: `guard-${id.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`,
  what: `taken out: ${guard}`,
  edits: [{ file, find, replace }],
  caughtBy: [{ world }],
}));
