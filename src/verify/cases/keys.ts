import { randomUUID } from "node:crypto";
import { isRefusal, isSuccess, type Reply, told } from "../answer.ts";
import { type Api, freshKey, type Key, keyOf } from "../api.ts";
import { always, type Baseline, type Case, cannotTell, counted, type Finding, fail, pass, treatment } from "../case.ts";
import { shortfall } from "../refusal.ts";
import type { Target } from "../target.ts";

const needsHeader = ({ dialect }: Target): string | null =>
  dialect.key.place.in === "header" ? null : "The dialect's keys travel in the body.";

/** The text as the dialect writes keys; of a header each character is a byte of its UTF-8. */
function written({ dialect: { key } }: Target, text: string): Key {
  if (key.place.in === "member") return keyOf(text);
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  return keyOf(key.form === "quoted" ? `"${bytes}"` : bytes);
}

/** Refused as it should be: by a 4xx. An accident (5xx, no answer) is none. */
function refusedOr(reply: Reply, otherwise: string): Finding {
  return (isRefusal(reply) ? pass : fail)(`The request got ${told(reply)}${isRefusal(reply) ? "" : `: ${otherwise}`}.`);
}

const missing: Case = {
  id: "key-missing",
  title: "A request without a key is refused, or runs for itself alone",
  level: "safety",
  why: "A required key that may be left out protects nobody. Worse, some APIs file every request without one under the same empty key: strangers get each other's answers.",
  sends: 2,
  runs: 0,
  excluded: always,
  async run(api, base) {
    const first = await api.send(null);
    if (isRefusal(first)) return pass(`Refused: ${told(first)}.`);
    if (!isSuccess(first)) return fail(`The request got ${told(first)}.`);
    if (api.target.dialect.key.required) return fail(`Accepted (${told(first)}), though the dialect requires a key.`);
    const { value: second, ran } = await counted(api, () => api.send(null));
    const kind = treatment(api, base, first, { reply: second, ran });
    const said = `Two requests without a key got ${told(first)} and ${told(second)}`;
    return kind === "ran" || kind === "unclear" ? pass(`${said}: each for itself.`) : fail(`${said}: ${kind}.`);
  },
};

const missingAnswer: Case = {
  id: "key-missing-answer",
  title: "The refusal of a request without a key reads as the dialect says",
  level: "dialect",
  why: "It is the first thing that a developer sees of the API's keys. A known status and a link to what is wanted save a support case.",
  sends: 1,
  runs: 0,
  excluded: ({ dialect }) =>
    dialect.missing === null || !dialect.key.required ? "The dialect does not say how it should read." : null,
  async run(api) {
    const reply = await api.send(null);
    const rule = api.target.dialect.missing;
    if (!isRefusal(reply) || rule === null) return cannotTell(`It was not refused: ${told(reply)}.`);
    const lack = shortfall(rule, reply);
    return lack === null ? pass(`Seen: ${told(reply)}.`) : fail(`Seen: ${told(reply)}; ${lack}.`);
  },
};

const empty: Case = {
  id: "key-empty",
  title: "An empty key is refused",
  level: "safety",
  why: 'A client whose variable is empty believes that it is protected. Taken for "no key" it is not; taken for a key, it shares its answers with everybody who has the same fault.',
  sends: 2,
  runs: 0,
  excluded: always,
  async run(api) {
    const finding = refusedOr(await api.send(written(api.target, "")), "taken for a key, or for none");
    const isQuoted = api.target.dialect.key.form === "quoted" && api.target.dialect.key.place.in === "header";
    if (finding.verdict !== "pass" || !isQuoted) return finding;
    // Besides the empty string in quotes: nothing at all behind the header's name.
    return refusedOr(await api.send(keyOf("")), "taken for a key, or for none");
  },
};

/** Beyond what anybody publishes, and within what servers take for a header. */
const VERY_LONG = 1_000;

const long: Case = {
  id: "key-long",
  title: "A very long key is refused, or taken whole",
  level: "safety",
  why: "A store that cuts keys off at its column's width takes two keys for one, and one that fails on them answers 500 or nothing.",
  sends: 2,
  runs: 0,
  excluded: always,
  async run(api, base) {
    const length = (api.target.dialect.key.longest ?? VERY_LONG - 1) + 1;
    const stem = randomUUID().padEnd(length - 1, "0");
    return distinct(
      api,
      base,
      [written(api.target, `${stem}1`), written(api.target, `${stem}2`)],
      `of ${length} characters`,
    );
  },
};

/** Two keys that a careless API takes for one. Refused is fine; accepted, the second must be a key of its own. */
async function distinct(api: Api, base: Baseline, [a, b]: readonly [Key, Key], what: string): Promise<Finding> {
  const first = await api.send(a);
  if (isRefusal(first)) return pass(`A key ${what} is refused: ${told(first)}.`);
  if (!isSuccess(first)) return fail(`A key ${what} got ${told(first)}.`);
  const { value: reply, ran } = await counted(api, () => api.send(b));
  const kind = treatment(api, base, first, { reply, ran });
  const said = `Two keys ${what} got ${told(first)} and ${told(reply)}`;
  if (kind === "ran") return pass(`${said}: each is a key of its own.`);
  return kind === "unclear" ? cannotTell(`${said}; the answers tell no more.`) : fail(`${said}: ${kind}.`);
}

const longest: Case = {
  id: "key-longest",
  title: "A key of the longest documented length is taken",
  level: "dialect",
  why: "Clients that keep to the documents must not be refused, nor lose the end of their key.",
  sends: 2,
  runs: 1,
  excluded: ({ dialect: { key } }) =>
    key.longest === null || key.uuid ? "The dialect documents no longest key, or a fixed form." : null,
  async run(api, base) {
    const key = written(api.target, randomUUID().padEnd(api.target.dialect.key.longest ?? 0, "0"));
    const first = await api.send(key);
    if (!isSuccess(first)) return fail(`It got ${told(first)}.`);
    const { value: reply, ran } = await counted(api, () => api.send(key));
    const kind = treatment(api, base, first, { reply, ran });
    const said = `It got ${told(first)}, its retry ${told(reply)}`;
    return kind === "replayed" || kind === "unclear" ? pass(`${said}.`) : fail(`${said}: ${kind}.`);
  },
};

const nonAscii: Case = {
  id: "key-non-ascii",
  title: "Keys with characters beyond ASCII are refused, or told apart",
  level: "safety",
  why: "Layers between client and store read such bytes in different ways. Where two of them become the same question mark, two keys become one.",
  sends: 2,
  runs: 0,
  excluded: always,
  async run(api, base) {
    const stem = randomUUID();
    const keys = [written(api.target, `${stem}é`), written(api.target, `${stem}ü`)] as const;
    if (!api.target.dialect.key.ascii) return distinct(api, base, keys, "beyond ASCII");
    return refusedOr(await api.send(keys[0]), "the dialect's keys are ASCII");
  },
};

const twoLines: Case = {
  id: "key-two-lines",
  title: "Two header lines with two keys are refused",
  level: "safety",
  why: "Some layers keep the first line, some the last, some join them. One request then has different keys in different places, and its retry is not recognised.",
  sends: 1,
  runs: 0,
  excluded: needsHeader,
  async run(api) {
    const [a, b] = [freshKey(api.target), freshKey(api.target)];
    return refusedOr(await api.send(keyOf(...a.lines, ...b.lines)), "one key was made of two");
  },
};

const comma: Case = {
  id: "key-comma",
  title: "A list of keys in one line is refused, or is not what two lines are",
  level: "practice",
  why: "Two lines of one name and one line with a comma are the same to HTTP and to many libraries: a key with a bare comma means one thing here and another there.",
  sends: 2,
  runs: 0,
  excluded: needsHeader,
  async run(api, base) {
    const [a, b] = [freshKey(api.target), freshKey(api.target)].map(({ lines }) => lines[0] ?? "");
    const first = await api.send(keyOf(`${a}, ${b}`));
    if (isRefusal(first)) return pass(`Refused: ${told(first)}.`);
    if (!isSuccess(first)) return fail(`It got ${told(first)}.`);
    if (api.target.dialect.key.form === "quoted")
      return fail(`Accepted (${told(first)}); a list is no key of the dialect.`);
    const { value: reply, ran } = await counted(api, () => api.send(keyOf(a ?? "", b ?? "")));
    if (isRefusal(reply)) return pass(`One line got ${told(first)}, two lines ${told(reply)}.`);
    return fail(
      `One line got ${told(first)}, two lines ${told(reply)}: ${treatment(api, base, first, { reply, ran })}.`,
    );
  },
};

const quoted: Case = {
  id: "key-quoted",
  title: "The quoted and the bare form of a key are one key",
  level: "safety",
  why: "The draft writes keys in quotes, most SDKs without. A client or proxy that changes sides between two attempts must not pay twice.",
  sends: 2,
  runs: 1,
  excluded: ({ dialect: { name, key } }) =>
    name === "ietf" && key.place.in === "header"
      ? null
      : "Only the draft has a quoted form; in this dialect quotes are part of the key.",
  async run(api, base) {
    const text = randomUUID();
    const forms = [keyOf(`"${text}"`), keyOf(text)] as const;
    const [usual, other] = api.target.dialect.key.form === "quoted" ? forms : [forms[1], forms[0]];
    const first = await api.send(usual);
    if (!isSuccess(first)) return fail(`The usual form got ${told(first)}.`);
    const { value: reply, ran } = await counted(api, () => api.send(other));
    const kind = treatment(api, base, first, { reply, ran });
    const said = `One form got ${told(first)}, the other ${told(reply)}`;
    if (kind === "replayed") return pass(`${said}: replayed.`);
    if (kind === "refused") return pass(`${said}: the other form is no key here, so nothing runs twice.`);
    return kind === "unclear" ? cannotTell(`${said}; the answers tell no more.`) : fail(`${said}: ${kind}.`);
  },
};

/** What a key may look like. */
export const keyCases: readonly Case[] = [
  missing,
  missingAnswer,
  empty,
  long,
  longest,
  nonAscii,
  twoLines,
  comma,
  quoted,
];
