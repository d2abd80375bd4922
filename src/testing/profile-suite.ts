import assert from "node:assert/strict";
import type { Answer } from "../http/exchange.ts";
import { firstSentRule } from "../http/profile.ts";
import { profileNamed } from "../http/profiles/index.ts";
import {
  type Business,
  type DialectRequest,
  type DialectService,
  dialectService,
  headerOf,
  type ProfileCase,
  type ProfileHarness,
  type Situation,
  textOf,
} from "./profile-harness.ts";
import { defineSuite } from "./suite.ts";

export type { DialectRequest, ExpectedRefusal, ProfileCase, ProfileHarness, Situation } from "./profile-harness.ts";

/** The refusal of a situation, held against what the dialect's page says. */
function assertRefused(harness: ProfileHarness, situation: Situation, answer: Answer, key: string): void {
  const expected = harness.refusals[situation];
  assert.ok(expected !== undefined, `The harness does not say how ${situation} is refused.`);
  const text = textOf(answer);
  assert.equal(answer.status, expected.status, text);
  expected.body(text, key);
  for (const [name, pattern] of Object.entries(expected.headers ?? {})) {
    assert.match(headerOf(answer, name) ?? "", pattern, name);
  }
  const { mediaType } = profileNamed(harness.profile);
  assert.equal(headerOf(answer, "content-type"), mediaType);
  assert.equal(headerOf(answer, "cache-control"), "no-store");
  assert.equal(headerOf(answer, "content-length"), String(Buffer.byteLength(text)));
}

function assertMarked({ profile }: DialectService, answer: Answer, replayed: boolean): void {
  if (profile.replayMarker === null) return;
  const [name, value] = profile.replayMarker;
  assert.equal(headerOf(answer, name), replayed ? value : undefined);
}

/** A request under a key of its own, sent twice by whoever asks. */
async function keyed(harness: ProfileHarness, content: "a" | "b" = "a") {
  const key = harness.keys();
  const service = await dialectService(harness.profile);
  return { key, service, request: harness.request(key, content) };
}

/** A run that goes on until it is told to end. */
function held(): { readonly does: Business; readonly end: () => void } {
  let end = () => {};
  const until = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { does: { until }, end };
}

const replaying: readonly ProfileCase[] = [
  {
    group: "replays",
    name: "runs a request once, and answers its repetition with the same bytes",
    async run(harness) {
      const { service, request } = await keyed(harness);
      const first = await service.send(request);
      const second = await service.send(request);
      assert.equal(service.ran(), 1);
      assert.equal(second.status, first.status);
      assert.equal(textOf(second), textOf(first));
      assertMarked(service, first, false);
      assertMarked(service, second, true);
    },
  },
  {
    group: "replays",
    name: "runs once for fifty at a time",
    async run(harness) {
      const { key, service } = await keyed(harness);
      const waiting = await dialectService(harness.profile, { waitMs: 5_000 });
      const answers = await Promise.all(Array.from({ length: 50 }, () => waiting.send(harness.request(key, "a"))));
      assert.equal(waiting.ran(), 1);
      assert.equal(new Set(answers.map(textOf)).size, 1);
      assert.equal(service.ran(), 0);
    },
  },
  {
    group: "replays",
    name: "does after a rejection what the profile says",
    async run(harness) {
      const { service, request } = await keyed(harness);
      service.will("refuse");
      const first = await service.send(request);
      const again = await service.send(request);
      const forgets = service.profile.defaults.afterFailure === "runAgain";
      assert.equal(first.status, 402);
      assert.equal(service.ran(), forgets ? 2 : 1);
      assert.equal(textOf(again) === textOf(first), !forgets);
      service.will("succeed");
      const later = await service.send(request);
      assert.equal(later.status, forgets ? 201 : 402);
    },
  },
  {
    group: "replays",
    name: "runs anew once the retention is over",
    async run(harness) {
      const { service, request } = await keyed(harness);
      await service.send(request);
      const { retentionMs = 86_400_000 } = service.profile.defaults;
      await service.clock.advance(retentionMs - 1);
      await service.send(request);
      assert.equal(service.ran(), 1);
      await service.clock.advance(2);
      await service.send(sentAt(service, request, service.clock.now()));
      assert.equal(service.ran(), 2);
    },
  },
];

const telling: readonly ProfileCase[] = [
  {
    group: "what a key reaches",
    name: "refuses another content under the key, or replays where the dialect compares nothing",
    async run(harness) {
      const { key, service, request } = await keyed(harness);
      const first = await service.send(request);
      const other = await service.send(harness.request(key, "b"));
      assert.equal(service.ran(), 1);
      if (service.profile.defaults.compare === "none") assert.equal(textOf(other), textOf(first));
      else assertRefused(harness, "mismatch", other, key);
    },
  },
  {
    group: "what a key reaches",
    name: "is one operation's, or the whole account's",
    async run(harness) {
      const { key, service, request } = await keyed(harness);
      await service.send(request);
      const other = await service.send(request, "others");
      const spansAccount = service.profile.defaults.keySpace === "account";
      assert.equal(service.ran(), spansAccount ? 1 : 2);
      if (spansAccount) assertRefused(harness, "mismatch", other, key);
    },
  },
  {
    group: "what a key reaches",
    name: "counts within one region, zone or queue where the dialect says so",
    async run(harness) {
      const { service, request } = await keyed(harness);
      const { elsewhere } = harness;
      assert.equal(elsewhere === undefined, service.profile.partition === undefined);
      if (elsewhere === undefined) return;
      await service.send(request);
      await service.send(elsewhere(request));
      await service.send(elsewhere(request));
      assert.equal(service.ran(), 2);
    },
  },
  {
    group: "what a key reaches",
    name: "does nothing on methods that ignore keys",
    async run(harness) {
      const { service, request } = await keyed(harness);
      for (const method of service.profile.key.ignoredOn ?? []) {
        if (["GET", "HEAD"].includes(method)) continue;
        const before = service.ran();
        await service.send({ ...request, method });
        await service.send({ ...request, method });
        assert.equal(service.ran(), before + 2, method);
      }
    },
  },
];

const refusing: readonly ProfileCase[] = [
  {
    group: "refusals",
    name: "refuses a request without a key, or runs it for itself",
    async run(harness) {
      const service = await dialectService(harness.profile);
      const answer = await service.send(harness.request(null, "a"));
      await service.send(harness.request(null, "b"));
      const { required } = service.profile.key;
      assert.equal(service.ran(), required ? 0 : 2);
      if (required) assertRefused(harness, "missing", answer, "");
      else assert.equal(answer.status, 201);
    },
  },
  {
    group: "refusals",
    name: "refuses malformed keys, and keys that are too long",
    async run(harness) {
      const service = await dialectService(harness.profile);
      const longest = service.profile.defaults.maxKeyLength ?? 255;
      for (const key of [...harness.malformed, "k".repeat(longest + 1)]) {
        assertRefused(harness, "malformed", await service.send(harness.request(key, "a")), key);
      }
      assert.equal(service.ran(), 0);
    },
  },
  {
    group: "refusals",
    name: "tells a duplicate of a running request to come back, and gives it the answer then",
    async run(harness) {
      const { key, service, request } = await keyed(harness);
      const { does, end } = held();
      service.will(does);
      const first = service.send(request);
      const early = await service.clock.advanceUntil(service.send(request));
      assertRefused(harness, "in_progress", early, key);
      assert.match(headerOf(early, "retry-after") ?? "", /^[1-9]\d*$/);
      end();
      assert.equal(textOf(await service.send(request)), textOf(await first));
      assert.equal(service.ran(), 1);
    },
  },
  {
    group: "refusals",
    name: "says of a failed handler what the profile says, and never runs it again",
    async run(harness) {
      const { key, service, request } = await keyed(harness);
      const first = await service.send(request, "captured");
      const later = await service.send(request, "captured");
      assert.equal(first.status, 500);
      assert.equal(service.ran(), 1);
      if (service.profile.provisional === "refused") return assertRefused(harness, "unknown", later, key);
      assert.equal(later.status, 500);
      assert.equal(textOf(later), "broken");
      assertMarked(service, later, true);
    },
  },
  {
    group: "refusals",
    name: "runs nothing while the store cannot be reached",
    async run(harness) {
      const { key, service, request } = await keyed(harness);
      service.reachable(false);
      assertRefused(harness, "store_down", await service.send(request), key);
      assert.equal(service.ran(), 0);
      service.reachable(true);
      await service.send(request);
      assert.equal(service.ran(), 1);
    },
  },
  {
    group: "refusals",
    name: "refuses a late retry of what it has forgotten, where that is asked for",
    async run(harness) {
      const key = harness.keys();
      const service = await dialectService(harness.profile, { refuseLateRetries: true });
      const request = sentAt(service, harness.request(key, "a"), service.clock.now());
      await service.send(request);
      assert.equal(service.ran(), 1);
      await service.clock.advance((service.profile.defaults.retentionMs ?? 86_400_000) + 1);
      assertRefused(harness, "too_late", await service.send(request), key);
      assert.equal(service.ran(), 1);
      await service.send(sentAt(service, harness.request(harness.keys(), "a"), service.clock.now()));
      assert.equal(service.ran(), 2);
    },
  },
];

function sentAt({ profile }: DialectService, request: DialectRequest, atMs: number): DialectRequest {
  return { ...request, headers: { ...request.headers, [firstSentRule(profile).header]: new Date(atMs).toUTCString() } };
}

/**
 * What every profile promises, held against what the harness says of the vendor's pages: the real gate over a memory store,
 * with requests as the dialect's clients write them.
 */
export const profileSuite = defineSuite<ProfileHarness>("profile", [...replaying, ...telling, ...refusing]);
