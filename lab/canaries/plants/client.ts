import { type Canary, unit } from "../canary.ts";

const CARRY = "src/client/carry.ts";

/** Breaks of the client's side. */
export const CLIENT: readonly Canary[] = [
  {
    id: "new-key-on-retry",
    what: "the client sends every attempt under a new key",
    edits: [
      {
        file: CARRY,
        find: "const next: StoredSubmission = { ...timed(), firstSentAt,",
        replace: "const next: StoredSubmission = { ...timed(), key: crypto.randomUUID(), firstSentAt,",
      },
    ],
    caughtBy: [unit("client-core", "is sent with the same key and the same bytes at every retry")],
  },
  {
    id: "sent-before-kept",
    what: "the client sends before the submission is written down",
    edits: [
      {
        file: CARRY,
        find: "        await shelf.keep(next);\n",
        replace: "        shelf.keep(next).catch(() => {});\n",
      },
    ],
    caughtBy: [unit("client-kept", "before the first attempt: nothing is sent, and the result says so")],
  },
  {
    id: "retried-past-retention",
    what: "the client repeats a request that the server may have forgotten",
    edits: [
      {
        file: "src/client/retry-window.ts",
        find: '  if (isSent(record) && spentMs >= rememberedMs(record.retentionMs, settings)) return "retention_over";\n',
        replace: "",
      },
    ],
    caughtBy: [unit("client-window", "is kept with the submission, so that resume after it sends nothing")],
  },
  {
    id: "clock-went-back",
    what: "a clock that went back gives the retry window anew",
    edits: [
      {
        file: "src/client/retry-window.ts",
        find: "record.spentMs + Math.max(0, passedMs) : ENDLESS_MS;",
        replace: "record.spentMs + Math.max(0, passedMs) : record.spentMs;",
      },
    ],
    caughtBy: [unit("client-window", "back over a restart: nobody knows what passed, so nothing is sent")],
  },
  {
    id: "redirect-followed",
    what: "a redirect is followed: the request goes to another server, or becomes a GET",
    edits: [{ file: "src/client/attempt.ts", find: 'redirect: "manual"', replace: 'redirect: "follow"' }],
    caughtBy: [unit("client-outcomes", "after a redirect")],
  },
  {
    id: "refusal-certain",
    what: "a refusal in front of the work is taken for the end of an earlier attempt",
    edits: [
      {
        file: CARRY,
        find: "certain: before === null || begun || result.replayed } : result;",
        replace: "certain: true } : result;",
      },
    ],
    caughtBy: [unit("client-outcomes", "are not certain after a lost answer where they do not tell of it")],
  },
  {
    id: "payload-key",
    what: "a key made from the payload is accepted: two equal orders are one",
    edits: [
      {
        file: "src/client/key.ts",
        find: "      if (plain.length > 15 && begins) return true;\n",
        replace: "      if (plain.length > 999 && begins) return true;\n",
      },
    ],
    caughtBy: [unit("client-keys", "is refused where it says nothing but the request")],
  },
];
