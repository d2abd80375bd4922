import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/check.ts";
import type { Spread } from "../measure.ts";
import type { Work } from "./contenders.ts";

/** One point of a curve. */
export interface ScalePoint {
  readonly work: Work;
  readonly entries: number;
  /** Requests (entries, for sweep and purge) a second. */
  readonly perSecond: Spread;
  /** Rate over that of the fewest entries, round by round. */
  readonly overFewest: Spread;
}

/** What a run of `npm run bench:scale` came to. */
export interface ScaleFigures {
  readonly ranOn: string;
  readonly command: string;
  readonly machine: string;
  readonly points: readonly ScalePoint[];
  readonly bytesPerEntry: readonly { readonly entries: number; readonly bytes: number }[];
}

/** Where `--write` keeps the figures, relative to the root. */
export const SCALE_FIGURES = "bench/scale-figures.json";

/** The figures that were kept last. */
export const keptScaleFigures = (): ScaleFigures =>
  JSON.parse(readFileSync(join(repositoryRoot, SCALE_FIGURES), "utf8")) as ScaleFigures;
