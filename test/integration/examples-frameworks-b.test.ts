import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { type BuiltExample, copiedExample, type RunningExample } from "./support/built-example.ts";
import { exampleCases, postTo } from "./support/framework-example.ts";

describe("examples of frameworks with web requests", () => {
  for (const name of ["hono", "fetch", "h3", "lambda"]) exampleCases(name);
});

interface Effects {
  readonly orders: readonly { readonly item: string }[];
  readonly refunds: readonly { readonly order: string }[];
}

const effectsOf = async (url: string): Promise<Effects> => (await fetch(`${url}/effects`)).json() as Promise<Effects>;

/** Sends a request twice: the first answer, and that the second one is its marked replay with the same bytes. */
async function twice(url: string, path: string, key: string, body: unknown): Promise<Response> {
  const first = await postTo(url, path, key, body);
  const again = await postTo(url, path, key, body);
  const text = await first.clone().text();
  expect([first.headers.get("idempotent-replayed"), again.headers.get("idempotent-replayed")], text).toEqual([
    null,
    "true",
  ]);
  expect([again.status, await again.text()]).toEqual([first.status, text]);
  expect(again.headers.getSetCookie()).toEqual([]);
  return first;
}

/** Builds an example with its framework's own command, and starts what that made. */
function builtServer(
  name: string,
  hidden: string,
  begin: (example: BuiltExample, url: string) => Promise<RunningExample>,
) {
  let example: BuiltExample;
  let server: RunningExample;
  beforeAll(async () => {
    const database = await createDatabase({ migrated: false });
    example = await copiedExample(name, hidden);
    server = await begin(example, database.url);
  }, 600_000);
  afterAll(async () => {
    await server?.stop();
    await example?.remove();
  });
  return () => server.url;
}

function sharedCases(url: () => string): void {
  it("runs an order once for ten requests at a time, and replays it", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => postTo(url(), "/orders", "o-1", { item: "ü" })));
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(texts).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1);
    expect(answers[0]?.headers.get("location")).toMatch(/^\/orders\/ord_/);
    expect((await postTo(url(), "/orders", "o-1", { item: "pen" })).status).toBe(422);
    expect((await effectsOf(url())).orders.map(({ item }) => item)).toEqual(["ü"]);
  });

  it("captures an existing handler: its body, its decoded parameter, its cookie for the first caller only", async () => {
    const first = await twice(url(), "/orders/a%20b/refunds", "r-1", { reason: "late" });
    expect(first.status).toBe(201);
    expect(first.headers.getSetCookie()).toHaveLength(1);
    expect(await first.json()).toMatchObject({ order: "a b" });
    expect((await postTo(url(), "/orders/a%20c/refunds", "r-1", { reason: "late" })).status).toBe(422);
    expect((await effectsOf(url())).refunds.map(({ order }) => order)).toEqual(["a b"]);
  });
}

describe("the example of Next.js, by next build and next start", () => {
  const next = "next/dist/bin/next";
  const url = builtServer("next", ".next", async (example, DATABASE_URL) => {
    await example.build(next, "build");
    return example.start(next, ["start", "-H", "127.0.0.1"], { DATABASE_URL });
  });
  sharedCases(url);

  it("replays an answer by redirect() of next/navigation, which is a throw", async () => {
    const seen: (readonly [number, string | null, string | null])[] = [];
    for (let sent = 0; sent < 2; sent++) {
      const { status, headers } = await fetch(`${url()}/orders/x/refunds`, {
        method: "POST",
        redirect: "manual",
        headers: { authorization: "Bearer acme", "idempotency-key": "r-2", "content-type": "application/json" },
        body: '{"reason":"see"}',
      });
      seen.push([status, headers.get("location"), headers.get("idempotent-replayed")]);
    }
    expect(seen[0]).toEqual([307, expect.stringMatching(/^\/refunds\/ref_/), null]);
    expect(seen[1]).toEqual([307, seen[0]?.[1], "true"]);
  });
});

describe("the example of Nitro, by nitro build and node", () => {
  const url = builtServer("nitro", ".nitro", async (example, DATABASE_URL) => {
    await example.build("nitro/dist/cli/index.mjs", "build");
    return example.start("./.output/server/index.mjs", [], { DATABASE_URL });
  });
  sharedCases(url);

  it("replays an HTTPError that an existing handler throws", async () => {
    const first = await twice(url(), "/orders/x/refunds", "r-2", { reason: "unknown" });
    expect([first.status, await first.json()]).toMatchObject([404, { message: "no such order" }]);
  });
});
