import fc from "fast-check";
import { codes, createOncekey, type OpenApiObject, ok, openApiOperation, problemSchema } from "oncekey";
import { idempotent } from "oncekey/fetch";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { parseKey } from "../../src/core/key.ts";

const once = createOncekey({
  store: memoryStore(),
  retentionMs: 90_500 * 1_000,
  waitMs: 2_000,
  maxKeyLength: 64,
  refuseLateRetries: true,
});
const write = once.transaction({ name: "orders.create", version: 1, run: async () => ok({}) });
const wrap = once.capture({ name: "refunds.create", version: 1, maxDurationMs: 1_000, retentionMs: 99_999, waitMs: 7 });
const lenient = once.transaction({ name: "queue.take", version: 1, compare: "none", run: async () => ok({}) });

type Any = Record<string, never>;
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((found, step) => (found as Any | undefined)?.[step], value);
const responsesOf = (operation: OpenApiObject) => operation.responses as Record<string, OpenApiObject>;
const PROBLEM = ["content", "application/problem+json", "schema"] as const;
const codesOf = (response: unknown) => at(response, ...PROBLEM, "allOf", 1, "properties", "code", "enum");

describe("the description of an operation", () => {
  it("lists every client code at its status, and no other", () => {
    const responses = responsesOf(openApiOperation(write, { authorize: () => true }));
    const listed = Object.entries(responses).flatMap(([status, response]) =>
      ((codesOf(response) ?? []) as string[]).map((code) => [code, Number(status)]),
    );
    const table = Object.entries(codes).flatMap(([code, row]) =>
      row.audience === "client" ? [[code, row.status]] : [],
    );
    expect(listed.toSorted()).toEqual(table.toSorted());
  });

  it("leaves out what the binding cannot answer", () => {
    const { responses, parameters } = openApiOperation(lenient, { requireKey: false });
    expect(Object.keys(responses as object)).not.toContain("422");
    expect(Object.keys(responses as object)).not.toContain("403");
    expect(codesOf(at(responses, "400"))).not.toContain("idempotency_key_missing");
    expect(at(parameters, 0, "required")).toBe(false);
    expect(at(openApiOperation(write), "parameters", 0, "required")).toBe(true);
  });

  it("keeps the missing key where a dialect has key and first instant, or none", () => {
    const listed = (profile: string) => {
      const other = createOncekey({ store: memoryStore(), profile, refuseLateRetries: true });
      const operation = other.transaction({ name: "orders.create", version: 1, run: async () => ok({}) });
      return JSON.stringify(openApiOperation(operation)["x-idempotency"]);
    };
    expect(listed("azure")).toContain("idempotency_key_missing");
    expect(listed("adyen")).not.toContain("idempotency_key_missing");
  });

  it("says how long to wait where a problem says when to come back", () => {
    const responses = responsesOf(openApiOperation(write));
    const waiting = Object.keys(responses).filter((status) => at(responses[status], "headers", "Retry-After"));
    expect(waiting).toEqual(["409", "503"]);
  });

  it("publishes times, retry advice and how a replay is marked", () => {
    expect(openApiOperation(wrap)["x-idempotency"]).toMatchObject({
      operation: "refunds.create",
      runKind: "capture",
      key: { header: "Idempotency-Key", required: true, maxLength: 64 },
      scope: { parts: ["tenant", "client"], keySpace: "operation" },
      compare: "wire",
      retentionMs: 99_999,
      retentionSeconds: 99,
      waitMs: 7,
      maxDurationMs: 1_000,
      replay: { header: "Idempotent-Replayed", value: "true" },
      problems: expect.arrayContaining([
        {
          code: "idempotency_in_progress",
          type: "/problems/idempotency_in_progress",
          status: 409,
          retry: "same_key",
          retryAfter: true,
        },
      ]),
    });
    expect(openApiOperation(write)["x-idempotency"]).toMatchObject({ retentionMs: 90_500_000, waitMs: 2_000 });
  });

  it("names the retention header only where the instance sends it", () => {
    expect(JSON.stringify(openApiOperation(write))).not.toContain("Idempotency-Retention");
    const publishing = createOncekey({ store: memoryStore(), publishRetention: true, retentionMs: 86_400_000 });
    const operation = publishing.transaction({ name: "a", version: 1, run: async () => ok({}) });
    const responses = responsesOf(openApiOperation(operation));
    expect(
      Object.values(responses).map((response) => at(response, "headers", "Idempotency-Retention", "schema")),
    ).toEqual(Object.values(responses).map(() => ({ type: "integer", const: 86_400 })));
  });

  it("is the same every time, and plain JSON", () => {
    const make = () => JSON.stringify(openApiOperation(write, { authorize: true, base: { responses: { 201: {} } } }));
    expect(make()).toBe(make());
    const described = openApiOperation(write);
    expect(JSON.parse(JSON.stringify(described))).toEqual(described);
  });
});

describe("what a document says already", () => {
  const mine = { description: "Mine", headers: { "Retry-After": { description: "mine" } } };

  it("is kept, with ours added", () => {
    const base = {
      summary: "Create",
      parameters: [{ name: "X-Trace", in: "header" }],
      responses: {
        201: { description: "Created" },
        409: { ...mine, content: { "application/problem+json": { schema: { title: "mine" }, example: 1 } } },
        503: { ...mine, content: { "text/plain": {} } },
      },
      "x-mine": 1,
    };
    const frozen = structuredClone(base);
    const described = openApiOperation(write, { base });
    expect(base).toEqual(frozen);
    expect(described).toMatchObject({ summary: "Create", "x-mine": 1 });
    expect(at(described, "parameters")).toEqual([
      base.parameters[0],
      expect.objectContaining({ name: "Idempotency-Key" }),
    ]);
    const responses = responsesOf(described);
    expect(responses["201"]).toMatchObject({ description: "Created", headers: { "Idempotent-Replayed": {} } });
    expect(responses["2XX"]).toBeUndefined();
    expect(responses["409"]).toMatchObject({
      description: "Mine",
      headers: { "Retry-After": { description: "mine" } },
    });
    expect(at(responses["409"], "content", "application/problem+json", "example")).toBe(1);
    const [own, ours] = at(responses["409"], ...PROBLEM, "anyOf") as unknown[];
    expect(own).toEqual({ title: "mine" });
    expect(at(ours, "allOf", 1, "properties", "code", "enum")).toContain("idempotency_in_progress");
    expect(Object.keys(at(responses["503"], "content") as object)).toEqual(["text/plain", "application/problem+json"]);
  });

  it.each(["4XX", "default"])("for %s is not hidden by an answer of ours", (range) => {
    const base = { responses: { [range]: { description: "Mine", content: { "application/json": { schema: {} } } } } };
    const responses = responsesOf(openApiOperation(write, { base }));
    expect(responses[range]).toMatchObject({ description: "Mine" });
    expect(Object.keys(at(responses["422"], "content") as object)).toEqual([
      "application/json",
      "application/problem+json",
    ]);
  });

  it("by reference is left alone", () => {
    const base = { responses: { 409: { $ref: "#/components/responses/Conflict" }, 200: { $ref: "#/r" } } };
    const responses = responsesOf(openApiOperation(write, { base }));
    expect(responses["409"]).toEqual({ $ref: "#/components/responses/Conflict" });
    expect(responses["200"]).toEqual({ $ref: "#/r" });
  });

  it("of the key's own header is kept", () => {
    const base = { parameters: [{ name: "idempotency-KEY", in: "header", description: "mine" }] };
    expect(openApiOperation(write, { base }).parameters).toEqual(base.parameters);
    const shared = { parameters: [{ $ref: "#/components/parameters/idempotency_key" }] };
    expect(openApiOperation(write, { base: shared }).parameters).toEqual(shared.parameters);
    const other = { parameters: [{ $ref: "#/components/parameters/Trace" }] };
    expect(openApiOperation(write, { base: other }).parameters).toHaveLength(2);
  });
});

describe("the shape of the fragment", () => {
  const bases: readonly OpenApiObject[] = [
    {},
    {
      responses: {
        201: { description: "Created" },
        402: { description: "Declined" },
        default: { description: "Else" },
      },
    },
    { responses: { "4XX": { description: "Mine", content: { "application/problem+json": { schema: {} } } } } },
  ];

  it.each(bases)("is what OpenAPI 3.1 asks for on the base %j", (base) => {
    const { parameters, responses } = openApiOperation(write, { base, authorize: true });
    for (const parameter of parameters as OpenApiObject[]) {
      expect(parameter).toMatchObject({ name: expect.any(String), in: "header", schema: { type: "string" } });
    }
    for (const [status, response] of Object.entries(responses as Record<string, OpenApiObject>)) {
      expect(status).toMatch(/^(?:[1-5](?:\d\d|XX)|default)$/);
      expect(Object.keys(response)).toEqual(expect.arrayContaining(["description"]));
      const allowed = new Set(["description", "headers", "content", "links"]);
      expect(Object.keys(response).filter((member) => !allowed.has(member))).toEqual([]);
      for (const header of Object.values((response.headers ?? {}) as Record<string, OpenApiObject>)) {
        expect(Object.keys(header).toSorted()).toEqual(["description", "schema"]);
      }
      const problem = at(response, "content", "application/problem+json") as OpenApiObject | undefined;
      expect(Object.keys(problem ?? { schema: 1 })).toEqual(["schema"]);
    }
  });
});

describe("the problem schema", () => {
  it("describes the body of a real problem", async () => {
    const shop = createOncekey({ store: memoryStore() });
    const operation = shop.transaction({ name: "a", version: 1, run: async () => ok({}) });
    const answer = idempotent(operation, { scope: () => ({ tenant: "acme", client: null }) });
    await shop.start();
    const response = await answer(new Request("http://shop/a", { method: "POST" }));
    const described = responsesOf(openApiOperation(operation))[String(response.status)];
    const body = (await response.json()) as Record<string, unknown>;
    expect(Object.keys(body).toSorted()).toEqual((problemSchema().required as string[]).toSorted());
    expect(codesOf(described)).toContain(body.code);
    for (const member of ["code", "retry", "state"]) {
      expect(at(problemSchema(), "properties", member, "enum")).toContain(body[member]);
    }
    expect(Object.keys(at(described, "content") as object)).toContain(response.headers.get("content-type"));
  });

  it("stands once in the document where a reference says so", () => {
    const problemRef = "#/components/schemas/IdempotencyProblem";
    const responses = responsesOf(openApiOperation(write, { problemRef }));
    expect(at(responses["422"], ...PROBLEM, "allOf", 0)).toEqual({ $ref: problemRef });
    expect(at(responsesOf(openApiOperation(write))["422"], ...PROBLEM, "allOf", 0)).toEqual(problemSchema());
  });

  it("has every client code", () => {
    const clients = Object.entries(codes).flatMap(([code, { audience }]) => (audience === "client" ? [code] : []));
    expect(at(problemSchema(), "properties", "code", "enum")).toEqual(clients);
  });
});

describe("the key's schema", () => {
  const schema = at(openApiOperation(write), "parameters", 0, "schema") as { pattern: string; maxLength: number };
  const pattern = new RegExp(schema.pattern);
  const fits = (line: string) => line.length <= schema.maxLength && pattern.test(line);
  const isKey = (line: string) => parseKey([line], { maxLength: 64 }).kind === "key";

  it.each(["k", '"k"', '"a b"', '"a\\"b"', "#-[]~", '"#-[]~"', `"${"\\\\".repeat(64)}"`])(
    "takes %s as the parser does",
    (line) => {
      expect([isKey(line), fits(line)]).toEqual([true, true]);
    },
  );

  it.each(["", "a,b", '"a,b"', "a b", "ké", '"k', "k\u007f", "\t", '"a"b"'])(
    "refuses %j as the parser does",
    (line) => {
      expect([isKey(line), fits(line)]).toEqual([false, false]);
    },
  );

  it("refuses nothing that the parser takes", () => {
    const line = fc.string({ unit: fc.constantFrom(...'ab,;"\\ #-[]~!é\t'), maxLength: 12 });
    fc.assert(fc.property(line, (given) => fits(given.trim()) || !isKey(given)));
  });
});
