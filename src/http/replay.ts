import type { AnyOutcome, HeaderLine } from "../core/outcome.ts";
import type { Answer } from "./exchange.ts";
import type { Profile } from "./profile.ts";
import type { Asked } from "./profile-request.ts";

/** Framing belongs to the connection that carries the answer, never to the outcome. */
const FRAMING = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "upgrade"]);

/** Statuses whose answers have no body and no `Content-Length` (RFC 9110 §8.6, §15.3.5, §15.4.5). */
export function isBodyless(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
}

/** The answer of the call that carried the operation out: all the handler's headers, and no replay marker, whoever set it. */
export function freshAnswer(
  profile: Profile,
  outcome: AnyOutcome,
  asked: Asked,
  kind: "own" | "not_begun" = "own",
): Answer {
  const headers = withoutMarker(profile, outcome.headers);
  return answer(outcome, [...headers, ...addedLines(profile, kind, { ...outcome, headers }, asked)]);
}

/** The answer of every other call: stored headers and bytes, marked. */
export function replayAnswer(profile: Profile, outcome: AnyOutcome, asked: Asked): Answer {
  const headers = withoutMarker(profile, outcome.headers);
  if (profile.replayMarker !== null) headers.push(profile.replayMarker);
  return answer(outcome, [...headers, ...addedLines(profile, "replayed", { ...outcome, headers }, asked)]);
}

/** The lines that the dialect adds to an answer. What the handler says itself is not said twice. */
export function addedLines(
  profile: Profile,
  kind: "own" | "not_begun" | "replayed",
  { status, headers }: Pick<AnyOutcome, "status" | "headers">,
  asked: Asked,
): HeaderLine[] {
  const lines = profile.headers?.({ kind, status }, asked) ?? [];
  if (lines.length === 0) return [];
  const said = new Set(headers.map(([name]) => name.toLowerCase()));
  return lines.filter(([name]) => !said.has(name));
}

function withoutMarker({ replayMarker }: Profile, headers: readonly HeaderLine[]): HeaderLine[] {
  return headers.filter(([name]) => name.toLowerCase() !== replayMarker?.[0]);
}

function answer(outcome: AnyOutcome, headers: readonly HeaderLine[]): Answer {
  const kept = headers
    .map(([name, value]): HeaderLine => [name.toLowerCase(), value])
    .filter(([name]) => !FRAMING.has(name));
  if (isBodyless(outcome.status)) return { status: outcome.status, headers: kept, body: new Uint8Array() };
  kept.push(["content-length", String(outcome.body.length)]);
  return { status: outcome.status, headers: kept, body: outcome.body };
}
