import { createOncekey, ok } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { expect, it } from "vitest";

const scope = { tenant: "acme", client: null };

/** An instance that compares nothing; its operation gives what its request is told by. */
async function uncompared(keySpace: "operation" | "account" = "operation") {
  const clock = fakeClock();
  const store = memoryStore({ clock: clock.now });
  const once = createOncekey({
    store,
    clock: clock.clock,
    compare: "none",
    keySpace,
    retentionMs: 300_000,
    clientRetryWindowMs: 300_000,
  });
  const references: string[] = [];
  const define = (name: string) =>
    once.transaction({
      name,
      version: 1,
      async run({ reference }) {
        references.push(reference);
        return ok({ run: references.length });
      },
    });
  const [take, give] = [define("messages.take"), define("messages.give")];
  await once.start();
  const run = async (body: unknown, operation = take) => once.run(operation, { scope, key: "k", input: { body } });
  return { clock, references, run, give };
}

it("answers another content under the key with the first one's outcome, and runs it once at a time", async () => {
  const { run, references, clock } = await uncompared();
  const results = await clock.advanceUntil(Promise.all(["a", "b", "a", "c"].map((body) => run(body))));
  expect(references).toHaveLength(1);
  expect(results.map(({ kind }) => kind).toSorted()).toEqual(["completed", "replayed", "replayed", "replayed"]);
});

it("derives from the content all the same: after the window another one is another request", async () => {
  const { run, references, clock } = await uncompared();
  await run("a");
  await clock.advance(300_001);
  await run("b");
  await clock.advance(300_001);
  await run("a");
  const [first, second, third] = references;
  expect(references).toHaveLength(3);
  expect(second).not.toBe(first);
  expect(third).toBe(first);
});

it("never gives one operation's outcome to another, where keys span the account", async () => {
  const { run, give, references } = await uncompared("account");
  await run("a");
  await expect(run("a", give)).resolves.toMatchObject({ kind: "mismatch" });
  expect(references).toHaveLength(1);
});
