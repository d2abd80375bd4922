import { type Answer, isSuccess, jsonOf, memberAt, type Reply, told } from "./answer.ts";
import { type Api, type Change, freshKey, isBusy, type Key } from "./api.ts";
import type { Target } from "./target.ts";

/** How a case ended. */
export type Verdict = "pass" | "fail" | "not-applicable" | "cannot-tell";

/** What a case found. */
export interface Finding {
  readonly verdict: Verdict;
  /** What was seen, in one or two sentences: statuses, lengths, digests; never a key, a body or a header's value. */
  readonly seen: string;
}

/** What the request that everything else is compared with brought. */
export interface Baseline {
  readonly key: Key;
  readonly first: Answer;
  /** The same request again. */
  readonly retry: Reply;
  /** Executions by the retry; `null` where nothing can be counted. */
  readonly ranOnRetry: number | null;
  /** Two requests with two keys are answered differently, so that an answer tells which execution it is of. */
  readonly telling: boolean;
}

/** Why a case matters: money or data at stake, what the dialect says, or what clients meet in practice. */
export type Level = "safety" | "dialect" | "practice";

/** One thing that is tried. */
export interface Case {
  readonly id: string;
  readonly title: string;
  readonly level: Level;
  /** Why it matters, in one or two sentences. */
  readonly why: string;
  /** Requests to operations that it sends, repetitions while it waits for a final answer not counted. */
  readonly sends: number;
  /** Executions that they bring about in an API that passes. */
  readonly runs: number;
  /** Why it cannot be tried on this target; `null` where it can. */
  excluded(target: Target): string | null;
  /** Raises {@link Untold} where nothing can be said. */
  run(api: Api, base: Baseline): Promise<Finding>;
}

/** The case came to a place from which nothing can be told. The message is what was seen. */
export class Untold extends Error {
  override readonly name = "Untold";
}

/** Tried, and the API did right. */
export const pass = (seen: string): Finding => ({ verdict: "pass", seen });
/** Tried, and the API did wrong. */
export const fail = (seen: string): Finding => ({ verdict: "fail", seen });
/** The case does not fit the operation, the dialect or what was given. */
export const notApplicable = (seen: string): Finding => ({ verdict: "not-applicable", seen });
/** Tried, and from outside nobody could say. */
export const cannotTell = (seen: string): Finding => ({ verdict: "cannot-tell", seen });

/** For cases that every target can be tried with. */
export const always = (): null => null;

/** What the API did with a repetition. `unclear`: its answers do not tell, and nothing can be counted. */
export type Treatment = "replayed" | "ran" | "refused" | "busy" | "broken" | "unclear";

/** What became of `reply`, which came under the key of `first`; `ran`: executions that were counted meanwhile. */
export function treatment(
  { target }: Api,
  { telling }: Baseline,
  first: Answer,
  { reply, ran }: { readonly reply: Reply; readonly ran: number | null },
): Treatment {
  if (isBusy(target, reply)) return "busy";
  if (reply.kind === "none" || reply.status >= 500) return "broken";
  if (reply.status >= 400) return "refused";
  if (ran !== null) return ran > 0 ? "ran" : "replayed";
  if (!isSameResult(target, first, reply)) return "ran";
  return telling ? "replayed" : "unclear";
}

/** Whether both are answers of one execution, as far as answers tell. Statuses are a case of their own. */
export function isSameResult({ dialect }: Target, a: Answer, b: Answer): boolean {
  if (a.bytes.equals(b.bytes)) return true;
  const [idA, idB] = [a, b].map((answer) => memberAt(jsonOf(answer), ["id"]));
  return dialect.replay === "state" && isSuccess(b) && idA !== undefined && idA === idB;
}

/** An ordinary request under a key of its own, which must be accepted. */
export async function begin(api: Api, change?: Change): Promise<{ readonly key: Key; readonly first: Answer }> {
  const key = freshKey(api.target);
  const first = await api.send(key, change);
  if (!isSuccess(first)) throw new Untold(`The first request, which should have been accepted, got ${told(first)}.`);
  return { key, first };
}

/** Runs the work and counts the executions meanwhile; `null` where nothing can be counted. */
export async function counted<T>(api: Api, work: () => Promise<T>): Promise<{ readonly value: T; ran: number | null }> {
  const before = await api.count();
  const value = await work();
  const after = await api.count();
  return { value, ran: before === null || after === null ? null : after - before };
}

/** `1 execution was counted`; where nothing can be: that it was not. */
export function ranTold(ran: number | null): string {
  if (ran === null) return "executions were not counted (no count URL)";
  return ran === 1 ? "1 execution was counted" : `${ran} executions were counted`;
}
