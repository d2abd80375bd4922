import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";

const children: ChildProcess[] = [];

afterEach(async () => {
  const running = children.splice(0).filter((child) => child.exitCode === null);
  await Promise.all(
    running.map((child) => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      return ended;
    }),
  );
});

/** Starts an example in memory and gives the address of its ready line. */
async function start(name: string): Promise<string> {
  const { DATABASE_URL: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=oncekey-source", "--import", "tsx", `examples/frameworks/${name}.ts`],
    { env: { ...env, PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] },
  );
  children.push(child);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const ready = new RegExp(`^oncekey ${name} ready (.*)$`).exec(line)?.[1];
    if (ready !== undefined) return (JSON.parse(ready) as { url: string }).url;
  }
  throw new Error(`The example ${name} ended before it was ready.`);
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer acme", ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

describe("the example of tRPC", () => {
  it.each([
    ["createOrder", { item: "tea" }, "orders"],
    ["createRefund", { order: "ord_1" }, "refunds"],
  ])("runs %s once for two equal calls", async (mutation, input, effects) => {
    const url = await start("trpc");
    const call = () => post(`${url}/${mutation}`, input, { "idempotency-key": "k-1" });
    const first = await call();
    expect(first).toMatchObject({ status: 200, body: { result: { data: input } } });
    expect(await call()).toEqual(first);
    const other = await post(`${url}/${mutation}`, { item: "x", order: "x" }, { "idempotency-key": "k-1" });
    expect(other.body.error.data).toMatchObject({
      code: "UNPROCESSABLE_CONTENT",
      idempotency: { code: "idempotency_payload_mismatch", retry: "new_key", state: "succeeded" },
    });
    const done = await (await fetch(`${url}/effects`)).json();
    expect(done.result.data[effects]).toHaveLength(1);
  });

  it("refuses a caller without a token before it looks at the key", async () => {
    const url = await start("trpc");
    const answer = await post(`${url}/createOrder`, { item: "tea" }, { authorization: "none" });
    expect(answer).toMatchObject({ status: 401, body: { error: { data: { code: "UNAUTHORIZED" } } } });
  });
});

describe("the example of GraphQL", () => {
  it.each([
    ["createOrder", `createOrder(item: "tea", idempotencyKey: "k-1") { id item }`, "orders"],
    ["createRefund", `createRefund(order: "ord_1") @idempotent(key: "k-1") { id order }`, "refunds"],
  ])("runs %s once for two equal calls", async (mutation, field, effects) => {
    const url = await start("graphql");
    const call = (text: string) => post(`${url}/graphql`, { query: `mutation { ${text} }` });
    const first = await call(field);
    expect(first).toMatchObject({ status: 200, body: { data: { [mutation]: { id: expect.any(String) } } } });
    expect(await call(field)).toEqual(first);
    const other = await call(field.replace(/"tea"|"ord_1"/, '"x"'));
    expect(other).toMatchObject({
      status: 422,
      body: {
        errors: [{ extensions: { code: "idempotency_payload_mismatch", retry: "new_key", state: "succeeded" } }],
      },
    });
    const done = await post(`${url}/graphql`, { query: "{ effects { orders { id } refunds { id } } }" });
    expect(done.body.data.effects[effects]).toHaveLength(1);
  });
});
