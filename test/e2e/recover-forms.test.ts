import { beforeAll, describe, expect, it } from "vitest";
import { behave, type RawAnswer } from "./support/client.ts";
import { type Lab, openLab, type Program, startPsp } from "./support/crash-lab.ts";
import { effectsAtProvider, everythingLanded } from "./support/crash-provider.ts";
import { chargeOf, rowsOf, submit, submitUntilCrash, submitUntilFinal, tracesOf } from "./support/crash-requests.ts";
import { makeDataDir, removeDataDir } from "./support/example.ts";

// The four ways to settle a call whose answer is missing (ONCEKEY_PSP_RECOVER), each against a provider that misbehaves
// in one way, with and without the API being killed right after the call. However it goes: never two effects outside,
// and where nobody can know, the answer says so.

type Form = "dedupes" | "find_cancel" | "find_settles" | "at_most_once";
type Charge = ReturnType<typeof chargeOf>;

/** One provider on a bad day, and two APIs that use it. */
interface Scene {
  readonly form: Form;
  readonly psp: Program;
  readonly ledger: string;
  /** Is killed. */
  readonly victim: Program;
  /** Serves what is not killed, and the retries of the victim's clients. */
  readonly survivor: Program;
}

interface Situation {
  readonly name: string;
  readonly what: string;
  /** Default: all of them. */
  readonly forms?: readonly Form[];
  readonly behaviour: Readonly<Record<string, unknown>>;
  /** The provider's answer to the first call is lost, even where nobody is killed. */
  readonly losesAnswer: boolean;
}

// The form that waits longest comes first, so that the others run meanwhile.
const FORMS: readonly Form[] = ["find_settles", "find_cancel", "at_most_once", "dedupes"];
const LOOKING = FORMS.filter((form) => form.startsWith("find"));
const LATE_MS = 2_500;

const SITUATIONS: readonly Situation[] = [
  { name: "late", what: "lands payments late", behaviour: { land_after_ms: LATE_MS }, losesAnswer: true },
  { name: "hiding", what: "hides new payments from look-ups", behaviour: { find_lag_ms: LATE_MS }, losesAnswer: false },
  {
    name: "hiding-cut",
    what: "cuts the connection and hides new payments from look-ups",
    forms: LOOKING,
    behaviour: { drop_next: 1, find_lag_ms: LATE_MS },
    losesAnswer: true,
  },
  { name: "cut", what: "cuts the connection after the deed", behaviour: { drop_next: 1 }, losesAnswer: true },
  { name: "good", what: "answers", behaviour: {}, losesAnswer: false },
];

let lab: Lab;

beforeAll(async () => {
  lab = await openLab({ env: { ONCEKEY_LEASE_MS: "4000" } });
});

async function withScene(form: Form, run: (scene: Scene) => Promise<void>): Promise<void> {
  const ledger = makeDataDir();
  const psp = await startPsp(ledger);
  // Only the form that relies on it gets a provider that dedupes: anywhere else it would hide a second call.
  await behave(psp.url, { dedupe: form === "dedupes" });
  const env = { PSP_URL: psp.url, ONCEKEY_PSP_RECOVER: form };
  const [victim, survivor] = await Promise.all([lab.api(env), lab.api(env)]);
  try {
    await run({ form, psp, ledger, victim, survivor });
  } finally {
    for (const program of [victim, survivor, psp]) program.signal("SIGKILL");
    await Promise.all([victim.ended, survivor.ended, psp.ended]);
    removeDataDir(ledger);
  }
}

async function recoverFrom(scene: Scene, charge: Charge): Promise<void> {
  const answer = await submitUntilFinal(scene.survivor, charge);
  expect(answer.status).toBe(201);
  await expectOneCharge(scene, charge);
  const replay = await submit(scene.survivor, charge);
  expect(replay.headers["idempotent-replayed"]).toBe("true");
  expect(replay.bytes.equals(answer.bytes)).toBe(true);
}

async function expectOneCharge({ psp, ledger }: Scene, charge: Charge): Promise<void> {
  await everythingLanded(ledger);
  expect(await effectsAtProvider(psp, charge.amount)).toEqual({ authorizations: 1, captures: 1 });
  expect(await rowsOf(lab, "charges", charge.key)).toBe(1);
}

/** Nothing can be known and nothing is done: the answer says so, now and for every retry. */
async function expectUnknown(scene: Scene, charge: Charge): Promise<void> {
  const answer = await untilUnknown(scene.survivor, charge);
  expectUnknownProblem(answer, "needs_recovery");
  expectUnknownProblem(await submit(scene.survivor, charge), "needs_recovery");
  await everythingLanded(scene.ledger);
  const made = await effectsAtProvider(scene.psp, charge.amount);
  expect(made.authorizations).toBeLessThanOrEqual(1);
  expect(made.captures).toBe(0);
  expect((await tracesOf(lab, charge)).entries).toMatchObject([{ state: "needs_recovery" }]);
}

/** The lease of a killed API has to lapse first; until then the first request counts as running. */
async function untilUnknown(api: Program, charge: Charge): Promise<RawAnswer> {
  for (let tried = 1; ; tried++) {
    const answer = await submit(api, charge);
    if (tried > 5 || answer.json().code !== "idempotency_in_progress") return answer;
  }
}

function expectUnknownProblem(answer: RawAnswer, state: "needs_recovery" | "in_progress"): void {
  expect(answer.status).toBe(409);
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  expect(answer.json()).toMatchObject({
    status: 409,
    code: "idempotency_outcome_unknown",
    retry: "same_key",
    state,
  });
}

/** A charge whose API is killed right after the call. Gives what is to happen with it. */
async function killedAfterCall(scene: Scene, { name, behaviour }: Situation): Promise<() => Promise<void>> {
  const charge = chargeOf(`killed-${scene.form}-${name}`);
  await behave(scene.psp.url, behaviour);
  await submitUntilCrash(scene.victim, charge, "call:authorize:after");
  return () => (scene.form === "at_most_once" ? expectUnknown(scene, charge) : recoverFrom(scene, charge));
}

/** The same where nobody is killed. */
async function notKilled(scene: Scene, { name, behaviour, losesAnswer }: Situation): Promise<() => Promise<void>> {
  const charge = chargeOf(`alive-${scene.form}-${name}`);
  await behave(scene.psp.url, behaviour);
  const first = await submit(scene.survivor, charge);
  const unknowable = scene.form === "at_most_once" && losesAnswer;
  if (unknowable) expectUnknownProblem(first, "needs_recovery");
  else if (first.status !== 201) expectUnknownProblem(first, "in_progress");
  return () => (unknowable ? expectUnknown(scene, charge) : recoverFrom(scene, charge));
}

const CASES = FORMS.flatMap((form) =>
  SITUATIONS.filter(({ forms = FORMS }) => forms.includes(form)).map((one) => ({ form, ...one })),
);

describe.concurrent("a charge has one effect", () => {
  for (const { form, ...one } of CASES) {
    it(`with ${form} where the provider ${one.what}`, () =>
      withScene(form, async (scene) => {
        const recoveries = [await killedAfterCall(scene, one), await notKilled(scene, one)];
        // Its bad moment is over, so that a charge can be finished at all.
        await behave(scene.psp.url, { land_after_ms: 0 });
        await Promise.all(recoveries.map((recovery) => recovery()));
      }));
  }
});

describe.concurrent("an intent that was committed before a call that was never sent", () => {
  it.each(["find_cancel", "find_settles"] as const)("is settled by %s and the charge is made once", (form) =>
    withScene(form, async (scene) => {
      const charge = chargeOf(`unsent-${form}`);
      await submitUntilCrash(scene.victim, charge, "open_intent:authorize:after");
      await recoverFrom(scene, charge);
    }),
  );

  it("stays unknown with at_most_once, and nothing is ever sent", () =>
    withScene("at_most_once", async (scene) => {
      const charge = chargeOf("unsent-at_most_once");
      await submitUntilCrash(scene.victim, charge, "open_intent:authorize:after");
      expectUnknownProblem(await untilUnknown(scene.survivor, charge), "needs_recovery");
      expect(await effectsAtProvider(scene.psp, charge.amount)).toEqual({ authorizations: 0, captures: 0 });
      expect((await tracesOf(lab, charge)).entries).toMatchObject([{ state: "needs_recovery" }]);
    }));
});
