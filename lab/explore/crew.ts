import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../test/support/bundle.ts";
import type { Job, JobDone } from "./job.ts";

/** Child processes that explore worlds. A world stays with the child that began it: only that one knows what was explored. */
export interface Crew {
  /** Does the jobs, as many at a time as there are children. `done` is told of each as it ends; `false` of it ends the rest. */
  doAll(jobs: readonly Job[], done: (what: JobDone) => boolean): Promise<void>;
  close(): Promise<void>;
}

interface Child {
  readonly process: ChildProcess;
  readonly worlds: Set<string>;
}

const PROGRAM = fileURLToPath(new URL("./child.ts", import.meta.url));
/** Schedules leave much behind them that does not live long. */
const YOUNG_SPACE = "--max-semi-space-size=64";

/** Starts the children, from one bundle: translating the sources anew makes each schedule slower by a third. */
export async function createCrew(size: number): Promise<Crew> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-explore-"));
  await bundle({ programs: { child: PROGRAM }, outDir });
  const start = (): Child => {
    return { process: fork(join(outDir, "child.mjs"), { execArgv: [YOUNG_SPACE] }), worlds: new Set() };
  };
  const children = Array.from({ length: size }, start);
  return {
    async doAll(jobs, done) {
      const open = [...jobs];
      let goesOn = true;
      const work = async (child: Child) => {
        for (
          let job = nextFor(child, open, children);
          goesOn && job !== undefined;
          job = nextFor(child, open, children)
        ) {
          child.worlds.add(job.world);
          if (!done(await ask(child, job))) goesOn = false;
        }
      };
      await Promise.all(children.map(work));
    },
    async close() {
      for (const { process } of children) process.kill();
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

/** Takes the next job that the child may do: of a world of its own, or of one that nobody has. */
function nextFor(child: Child, open: Job[], children: readonly Child[]): Job | undefined {
  const place = open.findIndex(({ world }) => {
    return child.worlds.has(world) || !children.some(({ worlds }) => worlds.has(world));
  });
  return place < 0 ? undefined : open.splice(place, 1)[0];
}

function ask({ process: child }: Child, job: Job): Promise<JobDone> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) => reject(new Error(`A child that explored ${job.world} ended (${code}).`));
    child.once("exit", died);
    child.once("message", (answer: JobDone | { readonly error: string }) => {
      child.off("exit", died);
      if ("error" in answer) reject(new Error(answer.error));
      else resolve(answer);
    });
    child.send(job);
  });
}

/** The child's side: does one job after the other, until its parent is gone. */
export function serveCrew(doJob: (job: Job) => Promise<JobDone>): void {
  process.on("disconnect", () => process.exit(0));
  process.on("message", (job: Job) => {
    const answer = (what: unknown) => void process.send?.(what);
    doJob(job).then(answer, (error: unknown) =>
      answer({ error: error instanceof Error ? error.message : String(error) }),
    );
  });
}
