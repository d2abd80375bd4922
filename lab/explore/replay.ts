import { beginExecution, type ExecutionTerms, type Violation } from "./execution.ts";
import { resultText } from "./gate.ts";
import { continueFairly } from "./progress.ts";
import { Diverged, labelsDigest, type ParsedSchedule } from "./schedule.ts";

/** What a schedule led to. */
export interface Replayed {
  readonly violation: Violation | null;
  /** Each choice, as it is called. */
  readonly labels: readonly string[];
}

/**
 * Follows a schedule that was printed, step by step; `say` is told each choice with what came of it. Where it ends without
 * a violation its fair continuation follows. Raises {@link Diverged} where it does not fit: the world or the code has
 * changed, or does not do the same thing twice.
 */
export async function replay(
  terms: ExecutionTerms,
  { schedule, digest }: Pick<ParsedSchedule, "schedule" | "digest">,
  say: (line: string) => void = () => {},
): Promise<Replayed> {
  const execution = await beginExecution(terms);
  const { stage } = execution;
  const labels: string[] = [];
  try {
    for (const place of schedule) {
      const choice = execution.choices()[place];
      if (choice === undefined) throw new Diverged(`There is no choice ${place} after:\n${labels.join("\n")}`);
      labels.push(choice.label);
      const told = stage.told.length;
      stage.lastResult = undefined;
      await execution.take(choice);
      const result = stage.taken === null ? "" : ` → ${resultText(stage.lastResult)}`;
      say(`${String(labels.length).padStart(3)}. ${choice.label}${result}`);
      for (const { client, answer } of stage.told.slice(told))
        say(`       ${client.name} is told ${answer.kind}: ${answer.text}`);
      const violation = execution.violation(false);
      if (violation !== null) return checked({ violation, labels }, digest);
    }
    const hasEnded = execution.choices().length === 0;
    const atEnd = hasEnded ? execution.violation(true) : null;
    if (atEnd !== null || !hasEnded) return checked({ violation: atEnd, labels }, digest);
    return checked({ violation: await continueFairly(execution), labels }, digest);
  } finally {
    await execution.end();
  }
}

function checked(replayed: Replayed, digest: string): Replayed {
  if (labelsDigest(replayed.labels) === digest) return replayed;
  throw new Diverged(`The choices are not called what they were when this was printed:\n${replayed.labels.join("\n")}`);
}
