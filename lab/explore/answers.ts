import { isInMemory } from "../../src/core/outcome.ts";
import type { AnyResult } from "../../src/engine/run-result.ts";
import type { Answer } from "./world.ts";

/** What a client learns from a run's result. */
export function answerOf(result: AnyResult): Answer {
  switch (result.kind) {
    case "completed":
    case "replayed": {
      const { status, body } = result.outcome;
      const bytes = isInMemory(body) ? Buffer.from(body).toString("utf8") : "(not in memory)";
      return { kind: "final", text: `${status} ${bytes}` };
    }
    case "mismatch":
      return { kind: "refused", text: result.kind };
    case "gone":
    case "too_late":
      return { kind: "gone", text: result.kind };
    case "unknown":
      return { kind: "later", text: `unknown: ${result.state}, ${result.reason}` };
    default:
      return { kind: "later", text: result.kind };
  }
}
