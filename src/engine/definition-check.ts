import type { RunKind } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { StandardSchema } from "../core/standard-schema.ts";
import type { Operation } from "./operation.ts";

const PARTS = ["body", "params", "query"];

/**
 * Refuses a definition that types would have refused, for those who write JavaScript: a misplaced schema would switch
 * validation off in silence. Raises `oncekey_config_invalid`.
 */
export function checkDefinition({ name, runKind, definition }: Operation): void {
  const { run, input, lookUp } = definition as Partial<Record<"run" | "input" | "lookUp", unknown>>;
  if (runKind !== "capture" && typeof run !== "function") throw refused(name, "has no run function");
  if (lookUp !== undefined) checkLookUp(name, runKind, lookUp);
  if (input === undefined) return;
  if (typeof input !== "object" || input === null || !Object.entries(input).every(isPart)) {
    throw refused(name, "input takes body, params and query, each a Standard Schema. Write input: { body: schema }");
  }
}

/** The other kinds look first: a claim that meets an entry has written nothing, but does not say what the entry is. */
function checkLookUp(name: string, runKind: RunKind, lookUp: unknown): void {
  if (runKind !== "transaction")
    throw refused(name, `lookUp is an option of transaction, not of ${runKind}. Leave it out`);
  if (lookUp !== "first" && lookUp !== "skip") throw refused(name, 'lookUp is "first" or "skip"');
}

function isPart([part, schema]: [string, unknown]): boolean {
  const validate = (schema as StandardSchema | undefined)?.["~standard"]?.validate;
  return PARTS.includes(part) && (schema === undefined || typeof validate === "function");
}

function refused(name: unknown, what: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `Operation ${JSON.stringify(name)}: ${what}. Nothing was started.`);
}
