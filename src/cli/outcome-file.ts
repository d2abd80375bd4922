import { readFile } from "node:fs/promises";
import { DescriptionRefused, describedOutcome, type FinalState } from "../core/described-outcome.ts";
import { parseJson } from "../core/json/parse.ts";
import type { Outcome } from "../core/outcome.ts";
import { UsageError } from "./command-line.ts";

/**
 * The outcome that a file describes, as {@link describedOutcome} reads it. Raises {@link UsageError}, which names the member
 * that is wrong and never repeats what stands in it.
 */
export async function outcomeOf(path: string, state: FinalState): Promise<Outcome> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    return refuse(`cannot be read (${error.code ?? error.name})`);
  });
  const node = parsed(bytes);
  try {
    return describedOutcome(node, state);
  } catch (error) {
    if (error instanceof DescriptionRefused) return refuse(error.what);
    throw error;
  }
}

function parsed(bytes: Uint8Array) {
  try {
    return parseJson(bytes, { allowNul: true, maxDepth: 200 });
  } catch {
    return refuse("is not JSON (RFC 8259, UTF-8, no repeated members)");
  }
}

function refuse(what: string): never {
  throw new UsageError(`The outcome file ${what}. Nothing was changed.`);
}
