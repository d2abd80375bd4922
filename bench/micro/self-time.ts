/** A processor profile as V8 writes it (`--cpu-prof`), as far as it is read here. Durations in microseconds. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** What one function took by itself, those that it calls aside. */
export interface SelfTime {
  readonly name: string;
  /** Source file and line where it stands, or what it belongs to. */
  readonly where: string;
  readonly selfUs: number;
  /** Of all that was sampled. */
  readonly share: number;
}

/**
 * The functions of a profile by the time they took themselves, longest first. `program`: the bundle that ran; its comments say
 * which file each part of it came from.
 */
export function selfTimes(profileText: string, program: string): SelfTime[] {
  const { nodes, samples, timeDeltas } = JSON.parse(profileText) as Profile;
  const byNode = new Map<number, number>();
  for (const [index, id] of samples.entries()) byNode.set(id, (byNode.get(id) ?? 0) + (timeDeltas[index] ?? 0));
  const total = [...byNode.values()].reduce((sum, us) => sum + us, 0);
  const whereIs = sourcesOf(program);
  const byFunction = new Map<string, { name: string; where: string; selfUs: number }>();
  for (const { id, callFrame } of nodes) {
    const name = callFrame.functionName === "" ? "(anonymous)" : callFrame.functionName;
    const where = callFrame.url.endsWith(".mjs") ? whereIs(callFrame.lineNumber) : callFrame.url || "engine";
    const known = byFunction.get(`${name} ${where}`) ?? { name, where, selfUs: 0 };
    known.selfUs += byNode.get(id) ?? 0;
    byFunction.set(`${name} ${where}`, known);
  }
  const times = [...byFunction.values()].sort((a, b) => b.selfUs - a.selfUs);
  return times.map((one) => ({ ...one, share: one.selfUs / total }));
}

/** The bundler writes `// path` above what it took from each file. */
function sourcesOf(program: string): (line: number) => string {
  const files: { readonly path: string; readonly line: number }[] = [];
  for (const [line, text] of program.split("\n").entries()) {
    const path = /^\/\/ (\S+\.(?:ts|js|mjs))$/.exec(text)?.[1];
    if (path !== undefined) files.push({ path, line });
  }
  return (line) => files.findLast((file) => file.line <= line)?.path ?? "bundle";
}
