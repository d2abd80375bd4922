import { isSuccess, type Reply, told } from "../answer.ts";
import { type Api, type BusyAnswer, freshKey, isBusy, type Key } from "../api.ts";
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
} from "../case.ts";

/** The same request so many times at once; with the slow headers, where the target has some. */
function storm(api: Api, key: Key, count: number): Promise<Reply[]> {
  return api.storm(key, count, { headers: api.target.slowHeaders });
}

function duplicates(count: number): Case {
  return {
    id: `duplicates-${count}`,
    title: `${count} duplicates at once run once`,
    level: "safety",
    why: "Users click twice, proxies and SDKs retry while the first request is still at work. An API that looks first and writes afterwards runs all of them.",
    sends: count + 1,
    runs: 1,
    excluded: always,
    async run(api, base) {
      const key = freshKey(api.target);
      const { value, ran } = await counted(api, async () => {
        const replies = await storm(api, key, count);
        return { replies, last: await api.settle(key, { headers: api.target.slowHeaders }) };
      });
      return judge(api, base, value, ran);
    },
  };
}

interface Storm {
  readonly replies: readonly Reply[];
  /** The answer after all of them. */
  readonly last: Reply;
}

function judge(api: Api, { telling }: Baseline, { replies, last }: Storm, ran: number | null): Finding {
  const { target } = api;
  const said = `${tally(replies)}; afterwards ${told(last)}; ${ranTold(ran)}.`;
  if (!isSuccess(last)) return fail(`${said} The key never became usable.`);
  const others = replies.filter((reply) => !isSuccess(reply) && !isBusy(target, reply));
  if (others.length > 0) return fail(`${said} Duplicates were answered with ${told(others[0] ?? last)}.`);
  const results = replies.filter(isSuccess);
  const strays = results.filter((reply) => !isSameResult(target, last, reply)).length;
  if (strays > 0) return fail(`${said} ${strays} of ${results.length} got another result.`);
  if (ran !== null) return (ran === 1 ? pass : fail)(said);
  if (telling) return pass(`${said} That one ran is inferred from the one result in all answers.`);
  return cannotTell(`${said} Answers do not tell executions apart here; give a count URL.`);
}

/** `48 × 201, 2 × 409`. */
function tally(replies: readonly Reply[]): string {
  const kinds = new Map<string, number>();
  for (const reply of replies) {
    const kind = reply.kind === "answer" ? String(reply.status) : `no answer (${reply.why})`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].map(([kind, count]) => `${count} × ${kind}`).join(", ");
}

const busyAnswer: Case = {
  id: "busy-answer",
  title: "A duplicate that comes while the first runs waits, or is told so as the dialect says",
  level: "dialect",
  why: "Client libraries retry on the documented answer and give up on any other: the user then sees an error for a payment that went through.",
  sends: 2,
  runs: 1,
  excluded: always,
  async run(api) {
    const key = freshKey(api.target);
    const replies = await storm(api, key, 2);
    await api.settle(key);
    return judgeBusy(api, replies);
  },
};

function judgeBusy({ target, busy: refusals }: Api, replies: readonly Reply[]): Finding {
  const broken = replies.find((reply) => !isSuccess(reply) && !isBusy(target, reply));
  if (broken !== undefined) return fail(`A duplicate got ${told(broken)}.`);
  const [refusal] = refusals;
  if (refusal === undefined) return waited(target.slowHeaders.length > 0, replies);
  if (target.dialect.busy === null)
    return notApplicable(`Seen: ${refusal.told}; the dialect does not say what it should be.`);
  const wrong = refusals.find(({ lack }) => lack !== null);
  return wrong === undefined ? pass(`Seen: ${refusal.told}.`) : fail(`Seen: ${wrong.told}; ${wrong.lack}.`);
}

function waited(isSlow: boolean, replies: readonly Reply[]): Finding {
  if (isSlow) return pass(`Every duplicate waited for the result: ${tally(replies)}.`);
  return cannotTell("No duplicate came while the first ran; a slow request (--slow-header) makes them overlap.");
}

const retryAfter: Case = {
  id: "retry-after",
  title: "Every 409 and 503 says when to come back",
  level: "practice",
  why: "Without Retry-After clients come back at once and all together, or not at all: several SDKs retry a 409 only where the header is present.",
  sends: 0,
  runs: 0,
  excluded: ({ dialect }) => (dialect.retryAfter ? null : "The dialect's documents name no Retry-After."),
  async run({ busy }) {
    const seen = busy.filter(({ status }) => [409, 503].includes(status));
    if (seen.length === 0) return notApplicable("No 409 and no 503 was seen in this run.");
    const lacking = seen.filter((answer) => !isRetryAfter(answer));
    const said = `${seen.length - lacking.length} of ${seen.length} such answers carry a valid Retry-After.`;
    return (lacking.length === 0 ? pass : fail)(said);
  },
};

/** Seconds, or an HTTP date (RFC 9110, section 10.2.3). */
function isRetryAfter({ retryAfter: value }: BusyAnswer): boolean {
  return value !== null && (/^\d+$/.test(value) || (/ GMT$/.test(value) && !Number.isNaN(Date.parse(value))));
}

/** What happens to duplicates that come together. */
export const duplicateCases: readonly Case[] = [duplicates(10), duplicates(50)];

/** Judged at the end: they look at all answers of the run. */
export const busyCases: readonly Case[] = [busyAnswer, retryAfter];
