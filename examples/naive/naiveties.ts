/**
 * What people get wrong about idempotency keys, one fault each. The server without any of them is right (for one process,
 * in memory); each can be planted alone, so that a test kit can be seen to catch exactly it.
 */
export const NAIVETIES = {
  "ignores-keys": "the key is not read at all",
  "looks-first": "looks for the key, runs, and stores afterwards: duplicates that come together all run",
  "gives-up-waiting": "answers 500 to a duplicate while the first runs",
  "compares-nothing": "whatever comes under a known key is answered with its answer",
  "compares-late": "answers a duplicate that waited without comparing it",
  "compares-bytes": "compares the body's bytes",
  "compares-doubles": "compares the body as JSON.parse reads it",
  "runs-mismatches": "runs another request under a known key, and keeps its answer instead",
  "one-tenant": "looks a key up without its tenant",
  "one-operation": "looks a key up without the operation",
  "answers-first": "looks a key up before it checks who asks",
  "forgets-hang-ups": "keeps an answer only where it could be delivered, and the key locked otherwise",
  "claims-early": "locks the key before it has the body",
  "stores-cookies": "keeps Set-Cookie with the answer",
  "stores-date": "keeps Date with the answer",
  "stores-body-only": "keeps the body alone: no Location, no type",
  "answers-200": "answers a replay with 200",
  "rewrites-json": "keeps answers as parsed JSON and writes them anew",
  "stores-text": "keeps answers as text",
  "skips-empty": "takes an answer without a body for none",
  "marks-always": "marks every answer as a replay",
  "marks-never": "never marks a replay",
  "forgets-refusals": "keeps successes only, and says when a refusal was made",
  "optional-key": "runs requests without a key",
  "plain-missing": "refuses a request without a key in plain text",
  "shares-no-key": "files requests without a key under the key undefined",
  "empty-is-none": "takes an empty key for none",
  "cuts-keys": "cuts keys off after 64 characters",
  "breaks-on-long-keys": "answers 500 to a long key",
  "takes-any-character": "takes keys of any characters",
  "folds-characters": "replaces what is not ASCII by a question mark",
  "joins-lines": "joins two header lines into one key",
  "takes-lists": "takes a list for a key",
  "quotes-matter": "takes quotes for a part of the key",
  "caps-keys": "refuses keys of more than 200 characters",
  "mismatch-409": "refuses another request with 409",
  "plain-mismatch": "refuses another request in plain text",
  "busy-423": "answers 423 to a duplicate while the first runs",
  "no-retry-after": "does not say when to come back",
  "any-method": "answers any method from what is stored",
  "reads-claim": "locks the key for a GET too",
  "forgets-soon": "keeps answers for a tenth of the time",
  "runs-late": "runs requests that were first sent before all that is kept",
} as const;

/** One fault. */
export type Naivety = keyof typeof NAIVETIES;

/** The faults of the server that most people write first: a map, a look, a run, a store. */
export const USUAL: readonly Naivety[] = [
  ...(["looks-first", "compares-nothing", "one-tenant", "one-operation", "answers-first", "forgets-hang-ups"] as const),
  ...(["stores-cookies", "stores-body-only", "answers-200", "rewrites-json", "skips-empty", "marks-never"] as const),
  ...(["optional-key", "empty-is-none", "takes-any-character", "joins-lines", "takes-lists"] as const),
  ...(["quotes-matter", "any-method", "runs-late"] as const),
];
