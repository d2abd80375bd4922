import { isRefusal, isSameBytes, isSuccess, type Reply, told } from "../answer.ts";
import { type Api, freshKey, headerOf, type Key, keyOf } from "../api.ts";
import {
  always,
  type Baseline,
  begin,
  type Case,
  cannotTell,
  counted,
  type Finding,
  fail,
  pass,
  ranTold,
  treatment,
} from "../case.ts";
import { shortfall } from "../refusal.ts";
import type { Target } from "../target.ts";
import type { Cut } from "../wire.ts";

function hangUp(cut: Cut, parts: Pick<Case, "id" | "title" | "why">, excluded: Case["excluded"]): Case {
  return {
    ...parts,
    level: "safety",
    sends: 3,
    runs: 2,
    excluded,
    async run(api) {
      const key = freshKey(api.target);
      const headers = cut === "waiting" ? api.target.slowHeaders : [];
      const { value: last, ran } = await counted(api, async () => {
        await api.hangUp(key, cut, { headers });
        // One that is as slow and began later: when it is answered, what was hung up on has come to its end as well.
        const [, settled] = await Promise.all([begin(api, { headers }), api.settle(key)]);
        return settled;
      });
      return judgeHangUp(api.target, cut, last, ran === null ? null : ran - 1);
    },
  };
}

function judgeHangUp({ dialect: { marker } }: Target, cut: Cut, last: Reply, ran: number | null): Finding {
  const said = `The retry ended with ${told(last)}; ${ranTold(ran)}.`;
  if (!isSuccess(last)) return fail(`${said} The key never became usable.`);
  if (ran !== null) return (ran === 1 ? pass : fail)(said);
  if (cut === "sending") return pass(`${said} A request that was cut short can hardly have run.`);
  const isMarked = marker !== null && !marker.both && headerOf(last, marker.name) !== null;
  if (isMarked) return pass(`${said} The retry's answer is marked as a replay.`);
  return cannotTell(`${said} The first answer was never seen: without a count URL nobody can tell if it ran twice.`);
}

const sending = hangUp(
  "sending",
  {
    id: "hang-up-sending",
    title: "A connection that breaks within the body leaves the key usable",
    why: "Mobile connections break in mid-request. An API that claims the key before it has the body answers 409 to every retry, for hours.",
  },
  ({ body }) => (body === null || body.length < 2 ? "Needs a body that can be cut." : null),
);

const waiting = hangUp(
  "waiting",
  {
    id: "hang-up-waiting",
    title: "A client that hangs up before the answer gets it at the retry, and nothing runs twice",
    why: "This is the reason why keys exist: the request arrived, the answer did not. APIs that store the answer only when it was delivered run again, or stay locked.",
  },
  always,
);

/** Longest retention that is waited for. */
const LONGEST_WAIT_MS = 60_000;

const lateRetry: Case = {
  id: "late-retry",
  title: "A retry late within the retention is still a replay",
  level: "safety",
  why: "Job queues retry for hours. An outcome that is forgotten before the published time is a second payment.",
  sends: 3,
  runs: 2,
  excluded: ({ retentionMs }) => (retentionMs === null ? "Needs --retention: how long outcomes are kept." : null),
  async run(api, base) {
    const retentionMs = api.target.retentionMs ?? 0;
    if (retentionMs > LONGEST_WAIT_MS) {
      return cannotTell("The retention is longer than a run can wait (a minute); try a deployment with a short one.");
    }
    const { key, first } = await begin(api);
    await untilAge(api, first.sentAtMs, retentionMs * 0.6);
    const { value: reply, ran } = await counted(api, () => api.settle(key));
    const kind = treatment(api, base, first, { reply, ran });
    const said = `After ${Math.round(retentionMs * 0.6)} ms the retry got ${told(reply)}`;
    if (kind === "unclear") return cannotTell(`${said}; the answers do not tell if it ran again.`);
    if (kind === "ran" && performance.now() - first.sentAtMs >= retentionMs)
      return cannotTell(`${said}, but too late.`);
    if (kind !== "replayed") return fail(`${said}: ${kind}.`);
    await untilAge(api, first.doneAtMs, retentionMs * 1.5);
    const after = await api.settle(key);
    const both = `${said}: replayed; after ${Math.round(retentionMs * 1.5)} ms ${told(after)}.`;
    return (isSuccess(after) || isRefusal(after) ? pass : fail)(both);
  },
};

const untilAge = (api: Api, startMs: number, ageMs: number): Promise<void> =>
  api.pause(Math.max(0, startMs + ageMs - performance.now()));

/** Long before all that anybody keeps. */
const LONG_AGO_MS = 400 * 86_400_000;

const lateRefused: Case = {
  id: "late-refused",
  title: "A request that says it was first sent before all that is kept is refused, not run",
  level: "safety",
  why: "After the retention a retry looks like a new request. Where the client says when it first sent it, running it again is a choice nobody wants made.",
  sends: 1,
  runs: 0,
  excluded: ({ lateHeaders, dialect }) =>
    lateHeaders.length === 0 && dialect.firstSent === null
      ? "Needs --late-header: the line that says when a request was first sent."
      : null,
  async run(api) {
    const { lateHeaders, dialect } = api.target;
    const key = { ...keyOf(...freshKey(api.target).lines), madeAt: new Date(Date.now() - LONG_AGO_MS).toUTCString() };
    const { value: reply, ran } = await counted(api, () => api.send(key, { headers: lateHeaders }));
    return judgeLate(dialect.late, reply, ran);
  },
};

function judgeLate(rule: Target["dialect"]["late"], reply: Reply, ran: number | null): Finding {
  const said = `It got ${told(reply)}; ${ranTold(ran)}.`;
  if (!isRefusal(reply) || (ran !== null && ran > 0)) return fail(said);
  const lack = rule === null ? null : shortfall(rule, reply);
  return lack === null ? pass(said) : fail(`${said.slice(0, -1)}; ${lack}.`);
}

const get: Case = {
  id: "method-get",
  title: "GET with a key is harmless",
  level: "safety",
  why: "Clients that send the header with everything must not get a stored creation for a list, and a read must not use up the key of the payment that follows.",
  sends: 3,
  runs: 1,
  excluded: ({ dialect, method }) => {
    if (method === "GET") return "The operation itself is a GET.";
    return dialect.key.place.in === "header" ? null : "The dialect's keys travel in the body, and GET has none.";
  },
  async run(api, base) {
    const key = freshKey(api.target);
    const { value: reads, ran } = await counted(api, () =>
      Promise.all([base.key, key].map((each) => api.send(each, { method: "GET" }))),
    );
    const said = `GET got ${reads.map(told).join(" and ")}`;
    if (ran !== null && ran > 0) return fail(`${said}; ${ranTold(ran)}.`);
    if (reads.some((read) => isStoredAnswer(base, read))) return fail(`${said}: the stored answer of another method.`);
    if (reads.some((read) => read.kind === "none" || read.status >= 500)) return fail(`${said}.`);
    return judgeAfterRead(api, base, said, key);
  },
};

const isStoredAnswer = ({ first, telling }: Baseline, read: Reply): boolean =>
  telling && read.kind === "answer" && isSameBytes(first, read);

async function judgeAfterRead(api: Api, base: Baseline, said: string, key: Key): Promise<Finding> {
  const { value: reply, ran } = await counted(api, () => api.settle(key));
  const both = `${said}; the key's own request then ${told(reply)}; ${ranTold(ran)}.`;
  if (!isSuccess(reply) || ran === 0) return fail(`${both} The read had used it up.`);
  return ran === null && !base.telling ? cannotTell(both) : pass(both);
}

/** Connections that break. */
export const hangUpCases: readonly Case[] = [sending, waiting];

/** Retries that come late. */
export const lateCases: readonly Case[] = [lateRetry, lateRefused];
/** Other methods. */
export const methodCases: readonly Case[] = [get];
