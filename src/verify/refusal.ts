import { type Answer, valuesOf, wordsOf } from "./answer.ts";
import type { RefusalRule } from "./dialects.ts";

/** What a refusal lacks of what the dialect says; `null` where it lacks nothing. */
export function shortfall(rule: RefusalRule, reply: Answer): string | null {
  if (!rule.statuses.includes(reply.status)) return `the dialect says ${rule.statuses.join(" or ")}`;
  if (rule.word !== undefined && !wordsOf(reply).includes(rule.word)) return `the dialect says "${rule.word}"`;
  if (rule.problem === true && !isProblem(reply)) {
    return "the dialect wants application/problem+json, or a Link with rel=describedby";
  }
  const [name, value] = rule.header ?? [];
  if (name === undefined || valuesOf(reply, name)[0]?.toLowerCase() === value) return null;
  return `the dialect wants the header ${name}: ${value}`;
}

function isProblem(reply: Answer): boolean {
  const type = valuesOf(reply, "content-type")[0] ?? "";
  return /^application\/problem\+json\b/i.test(type) || /rel="?describedby/i.test(valuesOf(reply, "link")[0] ?? "");
}
