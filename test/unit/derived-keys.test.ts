import { createOncekey, type KeyForm, none, ok } from "oncekey";
import { type MemoryStore, memoryStore } from "oncekey/memory";
import { fakeClock } from "oncekey/testing";
import { describe, expect, it } from "vitest";

const FORMS = ["base64url", "uuid", "hex"] as const satisfies readonly KeyForm[];
const SHAPES: Record<KeyForm, RegExp> = {
  base64url: /^[A-Za-z0-9_-]{43}$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  hex: /^[0-9a-f]{32}$/,
};

/** What the first attempt does, whose process dies while it sends; then what the resume does. */
interface Resume {
  readonly first?: KeyForm;
  readonly second?: KeyForm;
}

/** Two processes over one store: the first dies while it sends, the second resumes. Gives the keys and the result. */
async function resumed({ first, second }: Resume) {
  const time = fakeClock();
  const shared = memoryStore({ clock: time.now });
  const sent: string[] = [];
  const worker = async (keyForm: KeyForm | undefined, send: () => Promise<string>) => {
    const store: MemoryStore = Object.create(shared);
    const once = createOncekey({ store, clock: time.clock, leaseMs: 1_000, waitMs: 0, onError: () => {} });
    const operation = once.phases({
      name: "charges.create",
      version: 1,
      async run(op) {
        await op.call<{ amount: number }, string>("authorize", {
          timeoutMs: 60_000,
          request: { amount: 5 },
          run: ({ key }) => {
            sent.push(key);
            return send();
          },
          recover: { find: async () => none(), settlesWithinMs: 90_000 },
          ...(keyForm === undefined ? {} : { keyForm }),
        });
        return op.complete(async () => ok({}));
      },
    });
    await once.start();
    const run = () => once.run(operation, { scope: { tenant: "acme", client: null }, key: "k", input: {} });
    return { store, run };
  };
  const dying = await worker(first, () => new Promise(() => {}));
  dying.store.renew = () => Promise.reject(new Error("dead"));
  dying.store.suspend = () => Promise.reject(new Error("dead"));
  void dying.run().catch(() => {});
  await time.advance(120_000);
  const next = await worker(second, async () => "authorized");
  const result = await time.advanceUntil(next.run());
  return { sent, result };
}

describe("a resume", () => {
  it.each([undefined, ...FORMS])("sends the same key again (%s)", async (form) => {
    const { sent, result } = await resumed(form === undefined ? {} : { first: form, second: form });
    expect(result.kind).toBe("completed");
    expect(sent).toHaveLength(2);
    expect(sent[0]).toMatch(SHAPES[form ?? "base64url"]);
    expect(sent[1]).toBe(sent[0]);
  });

  it("of code with another keyForm looks up nothing and sends nothing: needs_recovery", async () => {
    const { sent, result } = await resumed({ first: "base64url", second: "uuid" });
    expect(result).toMatchObject({ kind: "unknown", reason: expect.stringContaining("call_changed") });
    expect(sent).toHaveLength(1);
  });
});
