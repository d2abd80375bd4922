import { type Answer, isRefusal, isSameBytes, isSuccess, type Reply, told, valuesOf } from "../answer.ts";
import { type Api, freshKey, isBusy } from "../api.ts";
import {
  always,
  type Baseline,
  type Case,
  cannotTell,
  counted,
  type Finding,
  fail,
  isSameResult,
  notApplicable,
  pass,
  ranTold,
  Untold,
} from "../case.ts";
import type { Target } from "../target.ts";

/** The retry of the baseline, which must have been answered. */
function retryOf({ retry, first }: Baseline): Answer {
  if (retry.kind === "answer") return retry;
  throw new Untold(`First ${told(first)}; the retry got ${told(retry)}.`);
}

function seen({ first, retry }: Baseline): string {
  return `First ${told(first)}, retry ${told(retry)}`;
}

/** Judges the pair that the baseline already has: sends nothing. */
function judging(parts: Pick<Case, "id" | "title" | "level" | "why">, judge: Judge): Case {
  return { ...parts, sends: 0, runs: 0, excluded: always, run: async (api, base) => judge(api, base, retryOf(base)) };
}

type Judge = (api: Api, base: Baseline, retry: Answer) => Finding;

const status = judging(
  {
    id: "replay-status",
    title: "A retry gets the status of the first answer",
    level: "safety",
    why: "A client that lost the first answer acts on the second. Another status makes it take a payment that was made for one that failed, or show an error for a success.",
  },
  ({ target }, base, retry) => {
    const isSame = target.dialect.replay === "bytes" ? retry.status === base.first.status : isSuccess(retry);
    return (isSame ? pass : fail)(`${seen(base)}.`);
  },
);

const bytes = judging(
  {
    id: "replay-bytes",
    title: "A retry gets the same body, byte for byte",
    level: "safety",
    why: "Signatures, digests and clients' parsers work on bytes. A body that was parsed and written anew loses digits of large numbers and the order of members.",
  },
  ({ target }, base, retry) => {
    if (!isSuccess(retry)) return cannotTell(`${seen(base)}: the retry was not answered with the result.`);
    if (isSameResult(target, base.first, retry)) return pass(`${seen(base)}.`);
    return fail(`${seen(base)}: another body.`);
  },
);

const CARRIED = [
  ...["Content-Type", "Content-Language", "Content-Disposition", "Content-Location"],
  ...["Location", "ETag", "Link", "Last-Modified"],
];

const headers = judging(
  {
    id: "replay-headers",
    title: "A retry gets the headers that describe the result",
    level: "safety",
    why: "A creation is often told by Location alone, and a body without its Content-Type is read as something else.",
  },
  ({ target }, base, retry) => {
    if (target.dialect.replay === "state") return notApplicable("The dialect answers with the state as it is now.");
    const differing = CARRIED.filter((name) => join(valuesOf(base.first, name)) !== join(valuesOf(retry, name)));
    if (differing.length > 0) return fail(`Differing or missing on the retry: ${differing.join(", ")}.`);
    const had = CARRIED.filter((name) => valuesOf(base.first, name).length > 0);
    return pass(`The same on both: ${had.length === 0 ? "none was sent" : had.join(", ")}.`);
  },
);

const join = (values: readonly string[]): string => values.join("\n");

const once: Case = {
  id: "replay-once",
  title: "A retry runs nothing",
  level: "safety",
  why: "This is what the key is for. An equal answer alone is no proof: an API may run again and answer alike, which only a count can show.",
  sends: 0,
  runs: 0,
  excluded: always,
  async run({ target }, base) {
    const { ranOnRetry } = base;
    if (ranOnRetry !== null) return (ranOnRetry === 0 ? pass : fail)(`${seen(base)}; ${ranTold(ranOnRetry)}.`);
    const retry = retryOf(base);
    if (isSuccess(retry) && !isSameResult(target, base.first, retry)) {
      return fail(`${seen(base)}: another result, so it was run again.`);
    }
    return cannotTell(`${seen(base)}. Whether it ran again cannot be told from outside without a count URL.`);
  },
};

/** Names under which replays are commonly marked, where the dialect defines none. */
const MARKER = /^(?:idempotent|idempotency)-?(?:replayed|replay|hit|status)$|^x-(?:idempotent|idempotency)/i;

const marker = judging(
  {
    id: "replay-marker",
    title: "A replay is told from a first answer by its marker",
    level: "dialect",
    why: "Clients and people who look into an incident must be able to see whether a request did something or was answered from memory. A marker on both says nothing.",
  },
  ({ target: { dialect } }, { first }, retry) => {
    const names = [...first.headers, ...retry.headers].map(([name]) => name.toLowerCase());
    const name = dialect.marker?.name ?? names.find((given) => MARKER.test(given));
    if (name === undefined) return notApplicable("The dialect defines no marker, and none was seen.");
    const [onFirst, onRetry] = [first, retry].map((answer) => isMarked(answer, name, dialect.marker?.value ?? null));
    const said = `${name} is ${onFirst ? "" : "not "}on the first answer, and ${onRetry ? "" : "not "}on the retry's.`;
    return (onRetry === true && onFirst === (dialect.marker?.both ?? false) ? pass : fail)(said);
  },
);

function isMarked(answer: Answer, name: string, value: string | null): boolean {
  const values = valuesOf(answer, name).map((given) => given.toLowerCase());
  return value === null ? values.length > 0 && !values.includes("false") : values.includes(value);
}

const PRIVATE = ["Set-Cookie", "Authentication-Info", "Proxy-Authentication-Info", "WWW-Authenticate"];

const cookies = judging(
  {
    id: "replay-cookies",
    title: "A replay hands out no cookies or authentication of the first answer",
    level: "safety",
    why: "A stored Set-Cookie gives a session to whoever asks with the key later, perhaps after it was ended.",
  },
  (_api, { first }, retry) => {
    const given = PRIVATE.filter((name) => valuesOf(first, name).length > 0);
    const repeated = given.filter((name) => valuesOf(retry, name).some((line) => valuesOf(first, name).includes(line)));
    if (repeated.length > 0) return fail(`Repeated from the first answer, value for value: ${repeated.join(", ")}.`);
    if (given.length === 0) return notApplicable("The first answer sets no cookie and carries no authentication.");
    return pass(`On the first answer and not repeated: ${given.join(", ")}.`);
  },
);

/** The header has whole seconds; a little more, and it must have moved. */
const DATE_MOVES_MS = 1_100;

const date: Case = {
  id: "replay-date",
  title: "A replay carries its own Date",
  level: "practice",
  why: "Date says when *this* answer was made. Caches and clients that correct their clock by it are misled by a stored one.",
  sends: 1,
  runs: 0,
  excluded: always,
  async run(api, { key, first }) {
    const [before] = valuesOf(first, "date");
    if (before === undefined) return notApplicable("The first answer has no Date.");
    await api.pause(Math.max(0, first.doneAtMs + DATE_MOVES_MS - performance.now()));
    const later = await api.settle(key);
    if (later.kind === "none") return cannotTell(`The later retry got ${told(later)}.`);
    const [after] = valuesOf(later, "date");
    if (after === undefined) return fail("The first answer has a Date, a later retry's has none.");
    return after === before ? fail("The first answer's Date came again.") : pass("The retry's Date is its own.");
  },
};

const empty: Case = {
  id: "empty-answer",
  title: "An answer without a body is replayed as one",
  level: "safety",
  why: 'Stores that take "no body" for "nothing stored" run a deletion or a 204 again at every retry.',
  sends: 0,
  runs: 0,
  excluded: always,
  async run(_api, base) {
    const { first, retry, ranOnRetry } = base;
    if (first.bytes.length > 0) return notApplicable(`The operation answers with a body (${told(first)}).`);
    if (retry.kind === "none" || !isSameBytes(first, retry)) return fail(`${seen(base)}.`);
    if (ranOnRetry === null)
      return cannotTell(`${seen(base)}; without a body and a count URL nothing tells if it ran.`);
    return (ranOnRetry === 0 ? pass : fail)(`${seen(base)}; ${ranTold(ranOnRetry)}.`);
  },
};

const TEXT = /^(?:text\/|application\/(?:json|xml|x-www-form-urlencoded)|[^;]*\+(?:json|xml))/i;

const binary = judging(
  {
    id: "binary-answer",
    title: "A binary answer is replayed unharmed",
    level: "safety",
    why: "A stored answer that went through text is damaged wherever its bytes are no UTF-8: a receipt or label that will not open.",
  },
  (_api, base, retry) => {
    const [type = ""] = valuesOf(base.first, "content-type");
    if (base.first.bytes.length === 0 || TEXT.test(type)) {
      return notApplicable("The operation answers with text or nothing; point the kit at one that answers binary.");
    }
    return (isSameBytes(base.first, retry) ? pass : fail)(`${seen(base)}.`);
  },
);

const refusal: Case = {
  id: "refusal-replayed",
  title: "What the business refused is treated at a retry as the dialect says",
  level: "dialect",
  why: "A declined payment that is tried again at every retry is declined again, or suddenly not: the client's first answer is then wrong.",
  sends: 2,
  runs: 0,
  excluded: ({ refusedBody }: Target) =>
    refusedBody === null ? "Needs --refused-body: a request that the business refuses." : null,
  async run(api, _base) {
    const body = api.target.refusedBody ?? Buffer.alloc(0);
    const key = freshKey(api.target);
    const first = await api.send(key, { body });
    if (!isRefusal(first) || isBusy(api.target, first))
      return cannotTell(`The request got ${told(first)}: no refusal.`);
    const { value: retry } = await counted(api, () => api.settle(key, { body }));
    return judgeRefusal(api.target, first, retry);
  },
};

function judgeRefusal({ dialect: { afterRefusal } }: Target, first: Answer, retry: Reply): Finding {
  const both = `First ${told(first)}, retry ${told(retry)}`;
  if (retry.kind === "none" || retry.status >= 500) return fail(`${both}.`);
  if (afterRefusal === "replayed") return (isSameBytes(first, retry) ? pass : fail)(`${both}; it is to be replayed.`);
  if (afterRefusal === null) return notApplicable(`${both}; the dialect does not say.`);
  return (isRefusal(retry) ? pass : fail)(`${both}; it may run again.`);
}

/** What a retry is answered with. */
export const replayCases: readonly Case[] = [
  ...[status, bytes, headers, once, marker, cookies, date, empty, binary, refusal],
];
