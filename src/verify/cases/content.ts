import { isRefusal, isSuccess, type Reply, told } from "../answer.ts";
import { type Api, freshKey, isBusy, type Key } from "../api.ts";
import { changedBody, decimalBody, restyledBody, withNumber } from "../bodies.ts";
import {
  type Baseline,
  begin,
  type Case,
  cannotTell,
  counted,
  type Finding,
  fail,
  notApplicable,
  pass,
  ranTold,
  treatment,
} from "../case.ts";
import { shortfall } from "../refusal.ts";
import type { Target } from "../target.ts";

/** Another request for the same operation; `null` where none was given and none can be derived. */
function otherOf(target: Target): Buffer | null {
  return target.otherBody ?? changedBody(target);
}

const needsOther = (target: Target): string | null =>
  otherOf(target) === null ? "Needs --other-body: from this body no other request can be derived." : null;

const mismatch: Case = {
  id: "mismatch-after",
  title: "The same key with another request is refused",
  level: "safety",
  why: "A key that is used twice by mistake must not answer a second payment with the first one's receipt: the client would believe that it was made.",
  sends: 1,
  runs: 0,
  excluded: needsOther,
  async run(api, base) {
    const { value: reply, ran } = await counted(api, () => send(api, base.key, otherOf(api.target)));
    return judgeMismatch(api, base, reply, ran);
  },
};

const send = (api: Api, key: Key, body: Buffer | null): Promise<Reply> => api.send(key, body === null ? {} : { body });

function judgeMismatch(api: Api, base: Baseline, reply: Reply, ran: number | null): Finding {
  const said = `The other request got ${told(reply)}; ${ranTold(ran)}.`;
  if (ran !== null && ran > 0) return fail(`${said} It was run.`);
  // Some APIs refuse another request by 409, which is also what a busy key gets: here nothing is running.
  if (isRefusal(reply)) return pass(said);
  const kind = treatment(api, base, base.first, { reply, ran });
  if (kind === "unclear" || kind === "replayed") return fail(`${said} It was taken for a retry of the first.`);
  return fail(kind === "ran" ? `${said} It was run under a key that was in use.` : said);
}

const mismatchAnswer: Case = {
  id: "mismatch-answer",
  title: "The refusal of another request reads as the dialect says",
  level: "dialect",
  why: 'Client libraries tell "use a new key" from "try again" by this answer. A wrong one makes them repeat for ever, or give up a payment that only had to be corrected.',
  sends: 1,
  runs: 0,
  excluded: (target) =>
    target.dialect.mismatch === null ? "The dialect does not say how it should read." : needsOther(target),
  async run(api, { key }) {
    const reply = await send(api, key, otherOf(api.target));
    const rule = api.target.dialect.mismatch;
    if (!isRefusal(reply) || rule === null) return cannotTell(`It was not refused: ${told(reply)}.`);
    const lack = shortfall(rule, reply);
    return lack === null ? pass(`Seen: ${told(reply)}.`) : fail(`Seen: ${told(reply)}; ${lack}.`);
  },
};

const mismatchRunning: Case = {
  id: "mismatch-running",
  title: "Two requests at once under one key: one runs, the other is refused",
  level: "safety",
  why: "Compared only after the wait, or not at all, the second request runs too, or is answered with the first one's result.",
  sends: 3,
  runs: 1,
  excluded: needsOther,
  async run(api) {
    const { target } = api;
    const headers = target.slowHeaders;
    const bodies = [target.body ?? Buffer.alloc(0), otherOf(target) ?? Buffer.alloc(0)];
    const key = freshKey(target);
    const { value, ran } = await counted(api, async () => {
      const replies = await Promise.all(bodies.map((body) => api.send(key, { headers, body })));
      const loser = replies.findIndex((reply) => isBusy(target, reply));
      // Told to come back: it does, now that nothing is running any more, and must be refused then.
      return loser < 0 ? replies : replies.with(loser, await returned(api, key, bodies[loser] ?? Buffer.alloc(0)));
    });
    return judgeRunning(api, value, ran);
  },
};

/** A 409 that stays after the winner is done is the refusal itself, in APIs that refuse other requests by 409. */
const returned = (api: Api, key: Key, body: Buffer): Promise<Reply> => api.send(key, { body });

function judgeRunning({ target }: Api, replies: readonly Reply[], ran: number | null): Finding {
  const said = `They got ${replies.map(told).join(" and ")}; ${ranTold(ran)}.`;
  const winners = replies.filter(isSuccess);
  const refused = replies.filter(isRefusal);
  if (ran !== null && ran !== 1) return fail(said);
  if (winners.length !== 1 || refused.length !== 1) return fail(said);
  const [winner, loser] = [winners[0], refused[0]];
  const isAtOnce = winner !== undefined && loser !== undefined && loser.doneAtMs < winner.doneAtMs;
  if (isAtOnce) return pass(`${said} It was refused while the first ran.`);
  const why =
    target.slowHeaders.length > 0
      ? "It was refused after the first was done."
      : "Whether they overlapped cannot be told without --slow-header.";
  return pass(`${said} ${why}`);
}

/** A retry whose bytes differ and whose content does not. */
function equalBody(parts: Pick<Case, "id" | "title" | "why">, bodyOf: (target: Target) => Buffer | null): Case {
  return {
    ...parts,
    level: "practice",
    sends: 2,
    runs: 1,
    excluded: (target) => (bodyOf(target) === null ? "Needs a JSON body that can be written in another way." : null),
    async run(api, base) {
      const { key, first } = await begin(api);
      const { value: reply, ran } = await counted(api, () => send(api, key, bodyOf(api.target)));
      const kind = treatment(api, base, first, { reply, ran });
      const said = `First ${told(first)}, the same content in other bytes ${told(reply)}`;
      if (kind === "replayed") return pass(`${said}: replayed.`);
      if (kind === "unclear") return cannotTell(`${said}; the answers do not tell if it ran again.`);
      return fail(`${said}: ${kind}.`);
    },
  };
}

const equalOrder = equalBody(
  {
    id: "equal-order",
    title: "The same members in another order are the same request",
    why: "Many languages keep no order of members. A client that builds its body anew for the retry is refused, though it asks for the same.",
  },
  (target) => restyledBody(target, { reversed: true }),
);

const equalSpace = equalBody(
  {
    id: "equal-space",
    title: "The same JSON with other white space is the same request",
    why: "Gateways and client libraries re-format bodies. White space between JSON's tokens says nothing.",
  },
  (target) => restyledBody(target, { spaced: true }),
);

const equalNumber = equalBody(
  {
    id: "equal-number",
    title: "1 and 1.0 are the same number",
    why: "Serialisers differ in how they write whole numbers. A retry from another version of a client must not be refused for it.",
  },
  decimalBody,
);

const EVEN = "9007199254740992";
const ODD = "9007199254740993";

const exactNumbers: Case = {
  id: "numbers-exact",
  title: `${EVEN} and ${ODD} are two requests`,
  level: "safety",
  why: "Both are the same double. An API that compares parsed JSON answers a second, different amount or account number with the first one's result.",
  sends: 2,
  runs: 1,
  excluded: (target) =>
    numbered(target, EVEN) === null ? "Needs a JSON body with a whole number, or --number-pointer." : null,
  async run(api, base) {
    const key = freshKey(api.target);
    const first = await send(api, key, numbered(api.target, EVEN));
    if (!isSuccess(first)) return notApplicable(`The API does not take such a number: ${told(first)}.`);
    const { value: reply, ran } = await counted(api, () => send(api, key, numbered(api.target, ODD)));
    return judgeMismatch(api, { ...base, key, first }, reply, ran);
  },
};

const numbered = (target: Target, digits: string): Buffer | null => withNumber(target, target.numberPath, digits);

/** When two requests are the same. */
export const contentCases: readonly Case[] = [
  ...[mismatch, mismatchAnswer, mismatchRunning, equalOrder, equalSpace, equalNumber, exactNumbers],
];
