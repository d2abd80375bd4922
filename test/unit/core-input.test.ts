import { describe, expect, it } from "vitest";
import { validateInput } from "../../src/core/input.ts";
import type { SchemaIssue, StandardSchema } from "../../src/core/standard-schema.ts";

/** A schema that gives what `validate` does, and counts how often it was asked. */
function schemaOf(validate: (value: unknown) => unknown): { schema: StandardSchema; asked: unknown[] } {
  const asked: unknown[] = [];
  const schema = {
    "~standard": {
      version: 1 as const,
      vendor: "test",
      validate: (value: unknown) => {
        asked.push(value);
        return { value: validate(value) };
      },
    },
  };
  return { schema, asked };
}

const refusing = (issues: readonly SchemaIssue[]): StandardSchema => ({
  "~standard": { version: 1 as const, vendor: "test", validate: () => ({ issues }) },
});

const droppedOf = async (raw: unknown, kept: unknown) =>
  (await validateInput({ body: schemaOf(() => kept).schema }, { body: raw })).dropped;

describe("the input of an operation", () => {
  it("is what each part's schema gave, and the part as it came where there is none", async () => {
    const body = schemaOf(() => ({ amount: 5 }));
    const { input, dropped } = await validateInput({ body: body.schema }, { body: { amount: "5" }, params: { id: 1 } });
    expect(input).toEqual({ body: { amount: 5 }, params: { id: 1 }, query: undefined });
    expect(Object.keys(input)).toEqual(["body", "params", "query"]);
    expect(dropped).toBeUndefined();
    expect(body.asked).toEqual([{ amount: "5" }]);
  });

  it("is validated in every part, at once or after a while", async () => {
    const later: StandardSchema = {
      "~standard": { version: 1, vendor: "test", validate: async () => ({ value: "later" }) },
    };
    const schemas = { body: schemaOf(() => 1).schema, params: schemaOf(() => 2).schema, query: later };
    expect((await validateInput(schemas, {})).input).toEqual({ body: 1, params: 2, query: "later" });
  });
});

describe("what validation dropped", () => {
  it("is each member that is in the request and not in the input, in its place", async () => {
    expect(await droppedOf({ a: 1, b: 2 }, { a: 1 })).toEqual({ body: { b: 2 } });
    expect(await droppedOf({ a: { b: 1, c: 2 }, d: 3 }, { a: { b: 1 }, d: 3 })).toEqual({ body: { a: { c: 2 } } });
    expect(await droppedOf([{ a: 1 }, { a: 1, b: 2 }], [{ a: 1 }, { a: 1 }])).toEqual({ body: { 1: { b: 2 } } });
    expect(await droppedOf([1, 2], [1])).toEqual({ body: { 1: 2 } });
    expect(await droppedOf({ a: null, b: false }, {})).toEqual({ body: { a: null, b: false } });
  });

  it("is nothing where members were changed, added, or turned into something else", async () => {
    expect(await droppedOf({ a: "1" }, { a: 1, b: "default" })).toBeUndefined();
    expect(await droppedOf({ a: { b: 1 } }, { a: "text" })).toBeUndefined();
    expect(await droppedOf("text", { a: 1 })).toBeUndefined();
    expect(await droppedOf({ a: 1 }, null)).toBeUndefined();
    expect(await droppedOf(null, {})).toBeUndefined();
    expect(await droppedOf({ at: new Date(0) }, { at: new Date(5) })).toBeUndefined();
    expect(await droppedOf(Object.assign(new (class A {})(), { a: 1 }), {})).toBeUndefined();
    expect(await droppedOf({ a: 1 }, Object.assign(new (class A {})(), {}))).toBeUndefined();
  });

  it("is looked for in objects without a prototype too, and only among own members", async () => {
    const bare = Object.assign(Object.create(null), { a: 1, b: 2 });
    expect(await droppedOf(bare, { a: 1 })).toEqual({ body: { b: 2 } });
    expect(await droppedOf({ a: 1, b: 2 }, Object.assign(Object.create(null), { a: 1 }))).toEqual({ body: { b: 2 } });
    expect(await droppedOf(JSON.parse('{"toString":1,"__proto__":{"a":1}}'), {})).toEqual({
      body: JSON.parse('{"toString":1,"__proto__":{"a":1}}'),
    });
  });

  it("is told by part, and of parts without a schema nothing is lost", async () => {
    const none = schemaOf(() => ({})).schema;
    const raw = { body: { a: 1 }, params: { b: 2 }, query: { c: 3 } };
    expect((await validateInput({ params: none, query: none }, raw)).dropped).toEqual({
      params: { b: 2 },
      query: { c: 3 },
    });
  });

  it("is not looked for beyond the depth that any form can be written in", async () => {
    const nested = (levels: number, inside: unknown) => {
      let value = inside;
      for (let level = 0; level < levels; level++) value = { a: value };
      return value;
    };
    expect(await droppedOf(nested(1_000, { b: 1 }), nested(1_000, {}))).toBeDefined();
    expect(await droppedOf(nested(1_001, { b: 1 }), nested(1_001, {}))).toBeUndefined();
    expect(await droppedOf(nested(100_000, { b: 1 }), nested(100_000, {}))).toBeUndefined();
  });
});

describe("a request that does not fit its schema", () => {
  const refusalOf = (issues: readonly SchemaIssue[]) =>
    validateInput({ query: refusing(issues) }, {}).then(
      () => expect.fail("must be refused"),
      (error: unknown) => error as { code: string; message: string },
    );

  it("is refused with the path of each issue", async () => {
    const issues = [{ message: "too large", path: ["items", { key: 2 }, "price"] }, { message: "no query" }];
    const { code, message } = await refusalOf(issues);
    expect(code).toBe("idempotency_request_invalid");
    expect(message).toContain(": query.items.2.price: too large; query: no query. Nothing was run");
  });

  it("shows five issues, and how many more there are", async () => {
    const issues = Array.from({ length: 7 }, (_, at) => ({ message: `m${at}` }));
    expect((await refusalOf(issues.slice(0, 5))).message).toContain("query: m4. Nothing");
    const { message } = await refusalOf(issues);
    expect(message).toContain("query: m4 (and 2 more). Nothing");
    expect(message).not.toContain("m5");
    expect((await refusalOf(issues.slice(0, 6))).message).toContain("(and 1 more)");
  });
});

describe("a schema that retries are compared by", () => {
  it("is asked twice, and refused where it gives two values for one request", async () => {
    const stable = schemaOf((value) => ({ value }));
    await validateInput({ body: stable.schema }, { body: 1 }, true);
    expect(stable.asked).toEqual([1, 1]);
    let calls = 0;
    const counting = schemaOf(() => ({ at: calls++ }));
    await expect(validateInput({ body: counting.schema }, { body: 1 }, true)).rejects.toMatchObject({
      code: "oncekey_input_unstable",
      message: expect.stringContaining("The body schema gave two different values"),
    });
    calls = 0;
    expect((await validateInput({ body: counting.schema }, { body: 1 })).input.body).toEqual({ at: 0 });
    expect(calls).toBe(1);
  });

  it("is refused where it takes a request once and refuses it then", async () => {
    let calls = 0;
    const schema: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => (calls++ === 0 ? { value: undefined } : { issues: [{ message: "too late" }] }),
      },
    };
    await expect(validateInput({ params: schema }, {}, true)).rejects.toMatchObject({
      code: "oncekey_input_unstable",
      message: expect.stringContaining("The params schema"),
    });
  });
});
