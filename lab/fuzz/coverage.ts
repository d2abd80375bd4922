import { type Profiler, Session } from "node:inspector";

/** Which parts of the code under test were run, as the engine counts them. */
export interface Coverage {
  /** Functions of which a part was run since the last look and never before. */
  fresh(): Reached[];
  /** Takes these parts for known; {@link fresh} tells them no more. */
  keep(reached: readonly Reached[]): void;
  /** Whether `others`, with what is known, leave nothing new in `reached`. Knows no more afterwards. */
  covers(others: readonly Reached[], reached: readonly Reached[]): boolean;
  /** How often blocks were run since the last look, all together: work as a number that no clock disturbs. */
  work(): number;
  /** How much of the code is known, in characters. */
  known(): number;
  stop(): void;
}

type Interval = readonly [start: number, end: number];

/** A function that was run, by what of it was not: the engine leaves out a block that ran as often as what is around it. */
export interface Reached {
  readonly name: string;
  readonly length: number;
  readonly missed: readonly Interval[];
}

/**
 * Starts to count, in this thread. Only code that is loaded afterwards is counted block by block, so import it later.
 * `isOwn` says by its URL whether a script is code under test.
 */
export function startCoverage(isOwn: (url: string) => boolean): Coverage {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const known = new Map<string, Reached>();
  const take = (): Profiler.ScriptCoverage[] => {
    let taken: Profiler.ScriptCoverage[] = [];
    // Within one thread the answer comes before `post` returns.
    session.post("Profiler.takePreciseCoverage", (_, { result }) => {
      taken = result.filter(({ url }) => isOwn(url));
    });
    return taken;
  };
  take();
  return {
    fresh: () => take().flatMap((script) => reachedIn(script).filter((one) => isFresh(one, known.get(one.name)))),
    keep(reached) {
      for (const one of reached) known.set(one.name, together(one, known.get(one.name)));
    },
    covers: (others, reached) =>
      reached.every((one) => {
        const other = others.find(({ name }) => name === one.name);
        return other !== undefined && !isFresh(one, together(other, known.get(one.name)));
      }),
    work: () => take().reduce((sum, script) => sum + workOf(script), 0),
    known: () => [...known.values()].reduce((sum, { length, missed }) => sum + length - lengthOf(missed), 0),
    stop: () => session.disconnect(),
  };
}

function reachedIn({ scriptId, functions }: Profiler.ScriptCoverage): Reached[] {
  return functions.flatMap(({ ranges: [whole, ...inside] }) => {
    // What begins at 0 is the module itself, which runs once.
    if (whole === undefined || whole.count === 0 || whole.startOffset === 0) return [];
    const name = `${scriptId}:${whole.startOffset}-${whole.endOffset}`;
    const missed = inside.filter(({ count }) => count === 0).map((one): Interval => [one.startOffset, one.endOffset]);
    return [{ name, length: whole.endOffset - whole.startOffset, missed }];
  });
}

function isFresh(one: Reached, known: Reached | undefined): boolean {
  return known === undefined || lengthOf(together(one, known).missed) < lengthOf(known.missed);
}

/** Missed is what both have missed. */
function together(one: Reached, known: Reached | undefined): Reached {
  if (known === undefined) return one;
  const shared = ([start, end]: Interval): Interval[] =>
    known.missed
      .map(([from, to]): Interval => [Math.max(start, from), Math.min(end, to)])
      .filter(([from, to]) => from < to);
  return { ...one, missed: one.missed.flatMap(shared) };
}

function lengthOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, [start, end]) => sum + end - start, 0);
}

function workOf({ functions }: Profiler.ScriptCoverage): number {
  return functions.reduce((sum, { ranges }) => sum + ranges.reduce((all, { count }) => all + count, 0), 0);
}
