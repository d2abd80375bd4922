import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/check.ts";

/** One case of a file under `test/vectors/`. */
export interface Vector {
  readonly name: string;
  /** The input as text. Either this or `hex`. */
  readonly text?: string;
  /** The input's bytes. */
  readonly hex?: string;
  /** What must come of it; what that looks like, each file says of itself. `null`: it is refused. */
  readonly want: unknown;
}

/** The cases of `test/vectors/<name>.json`. Raises what reading a file raises. */
export function readVectors(name: string): readonly Vector[] {
  const text = readFileSync(join(repositoryRoot, "test/vectors", `${name}.json`), "utf8");
  return (JSON.parse(text) as { readonly cases: readonly Vector[] }).cases;
}

/** The input of a case. */
export function inputOf({ text, hex }: Vector): Buffer {
  return hex === undefined ? Buffer.from(text ?? "") : Buffer.from(hex, "hex");
}
