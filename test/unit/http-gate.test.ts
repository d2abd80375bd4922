import { describe, expect, it } from "vitest";
import { codes, OncekeyError } from "../../src/core/errors.ts";
import { fingerprintRing } from "../../src/core/fingerprint.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Operation } from "../../src/engine/operation.ts";
import type { OperationRequest } from "../../src/engine/request.ts";
import type { AnyResult } from "../../src/engine/run-result.ts";
import { DEFAULTS } from "../../src/engine/settings.ts";
import type { BindingOptions } from "../../src/http/binding.ts";
import type { Answer, BodyRead, Exchange } from "../../src/http/exchange.ts";
import { bind } from "../../src/http/gate.ts";

const scope = () => ({ tenant: "acme", client: null });
const outcome: Outcome = { status: 201, headers: [["location", "/1"]], body: Buffer.from("{}") };

interface FakeOptions {
  readonly runKind?: Operation["runKind"];
  readonly definition?: Partial<Operation["definition"]>;
  readonly rules?: Partial<Operation["rules"]>;
  readonly settings?: Partial<typeof DEFAULTS>;
  execute?(request: OperationRequest): Promise<AnyResult>;
}

/** An operation whose engine gives what a case says, and keeps what it was asked. */
function fake({ runKind = "transaction", definition, rules, settings, execute }: FakeOptions = {}) {
  const requests: OperationRequest[] = [];
  const operation: Operation = {
    runKind,
    name: "orders.create",
    version: 1,
    identityName: "orders.create",
    rules: { compare: "wire", keySpace: "operation", afterFailure: "replay", ...rules },
    definition: { name: "orders.create", version: 1, ...definition },
    engine: {
      settings: { ...DEFAULTS, ...settings },
      ring: fingerprintRing(),
      refused: () => {},
      state: async () => "none",
      bound: () => {},
      async execute(_operation, request) {
        requests.push(request);
        return execute === undefined ? { kind: "completed", outcome } : execute(request);
      },
    },
  };
  return { operation, requests };
}

function exchange(
  overrides: Partial<Exchange> & { headers?: Record<string, string[]>; body?: BodyRead } = {},
): Exchange {
  const { headers = {}, body, ...rest } = overrides;
  const all: Record<string, string[]> = { "idempotency-key": ["k"], "content-type": ["application/json"], ...headers };
  return {
    native: {},
    method: "POST",
    target: "/v1/orders",
    params: {},
    headerLines: (name) => all[name] ?? [],
    readBody: async () => body ?? { kind: "bytes", bytes: Buffer.from('{"a":1}') },
    ...rest,
  };
}

function ask(given: FakeOptions, at: Parameters<typeof exchange>[0] = {}, options?: Partial<BindingOptions<unknown>>) {
  return bind(fake(given).operation, { scope, ...options }).answer(exchange(at));
}

const problem = ({ body }: Answer) => JSON.parse(Buffer.from(body as Uint8Array).toString()) as Record<string, unknown>;
const header = ({ headers }: Answer, name: string) => headers.filter(([n]) => n === name).map(([, value]) => value);

describe("the HTTP contract", () => {
  const rows: readonly [AnyResult, status: number, code: keyof typeof codes, retry: string, state: string][] = [
    [{ kind: "mismatch", state: "failed" }, 422, "idempotency_payload_mismatch", "new_key", "failed"],
    [{ kind: "busy", retryAfterMs: 1 }, 409, "idempotency_in_progress", "same_key", "in_progress"],
    [
      {
        kind: "unknown",
        state: "needs_recovery",
        reason: "r",
        provisional: { ...outcome, status: 500 },
        retryAfterMs: 1,
      },
      409,
      "idempotency_outcome_unknown",
      "same_key",
      "needs_recovery",
    ],
    [{ kind: "gone", state: "succeeded" }, 409, "idempotency_response_unavailable", "never", "succeeded"],
    [{ kind: "store_unavailable", retryAfterMs: 1 }, 503, "idempotency_store_unavailable", "same_key", "none"],
    [{ kind: "lease_lost", retryAfterMs: 1 }, 503, "idempotency_lease_lost", "same_key", "in_progress"],
    [{ kind: "commit_unknown", retryAfterMs: 1 }, 503, "idempotency_commit_unknown", "same_key", "in_progress"],
    [{ kind: "contention", retryAfterMs: 1 }, 503, "idempotency_contention", "same_key", "none"],
    [
      { kind: "version_unknown", state: "succeeded", retryAfterMs: 1 },
      503,
      "idempotency_version_unknown",
      "same_key",
      "succeeded",
    ],
  ];

  for (const [result, status, code, retry, state] of rows) {
    it(`answers a run that is ${result.kind} with ${status} ${code}`, async () => {
      const answer = await ask({ execute: async () => result });
      expect(answer.status).toBe(status);
      expect(problem(answer)).toMatchObject({ status, code, retry, state, type: `/problems/${code}` });
      expect(problem(answer).title).toBe(codes[code].title);
      expect(header(answer, "content-type")).toEqual(["application/problem+json"]);
      expect(header(answer, "retry-after")).toEqual("retryAfterMs" in result ? ["1"] : []);
      expect(header(answer, "content-length")).toEqual([String(answer.body.length)]);
      expect(header(answer, "idempotent-replayed")).toEqual([]);
    });
  }

  it("gives Retry-After in whole seconds, rounded up, from 1 to an hour", async () => {
    const rows = [
      [0, "1"],
      [-5, "1"],
      [1_001, "2"],
      [86_400_000, "3600"],
      [Number.NaN, "1"],
    ] as const;
    for (const [retryAfterMs, want] of rows) {
      const answer = await ask({ execute: async () => ({ kind: "busy", retryAfterMs }) });
      expect(header(answer, "retry-after")).toEqual([want]);
    }
  });

  it("answers a client's errors that the engine raises, and leaves the others to the framework", async () => {
    const invalid = new OncekeyError("idempotency_request_invalid", "The request does not fit its schema: body.a.");
    const answer = await ask({ execute: () => Promise.reject(invalid) });
    expect(problem(answer)).toMatchObject({
      status: 400,
      code: "idempotency_request_invalid",
      detail: invalid.message,
    });
    const broken = new OncekeyError("oncekey_not_started", "not started");
    await expect(ask({ execute: () => Promise.reject(broken) })).rejects.toBe(broken);
    const thrown = new Error("the handler's");
    await expect(ask({ execute: () => Promise.reject(thrown) })).rejects.toBe(thrown);
  });

  it("puts no key, body or header value into a problem", async () => {
    const secret = "s3cret";
    const answers = [
      await ask({}, { headers: { "idempotency-key": [`${secret} x`] } }),
      await ask({}, { body: { kind: "bytes", bytes: Buffer.from(`{"a":"${secret}",}`) } }),
      await ask({}, { headers: { "content-type": [`${secret}/x`] } }),
      await ask({}, { headers: { "content-encoding": [secret] } }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(Buffer.from(answer.body as Uint8Array).toString()).not.toContain(secret);
    }
  });
});

describe("answers", () => {
  it("frame the body themselves, and drop framing and marker of the handler", async () => {
    const headers = [
      ["Content-Length", "99"],
      ["Transfer-Encoding", "chunked"],
      ["Idempotent-Replayed", "true"],
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
    ] as const;
    const answer = await ask({ execute: async () => ({ kind: "completed", outcome: { ...outcome, headers } }) });
    expect(answer.headers).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["content-length", "2"],
    ]);
  });

  it("mark a replay once, and keep a bodyless one free of length and type", async () => {
    for (const status of [204, 304]) {
      const stored: Outcome = { status, headers: [["idempotent-replayed", "true"]], body: Buffer.from("x") };
      const answer = await ask({ execute: async () => ({ kind: "replayed", outcome: stored }) });
      expect(answer).toEqual({ status, headers: [["idempotent-replayed", "true"]], body: new Uint8Array() });
    }
  });
});

describe("the order of checks", () => {
  it("is key, size and coding, canonical form, scope, authorize, look-up", async () => {
    const steps: string[] = [];
    const options = {
      scope: () => {
        steps.push("scope");
        return scope();
      },
      authorize: () => {
        steps.push("authorize");
        return steps.length < 100;
      },
    };
    const execute = async (): Promise<AnyResult> => {
      steps.push("look-up");
      return { kind: "completed", outcome };
    };
    const readBody = async (): Promise<BodyRead> => {
      steps.push("body");
      return { kind: "bytes", bytes: Buffer.from(steps.includes("ok") ? "{}" : "{") };
    };
    const headers = { "idempotency-key": [""] };
    expect(problem(await ask({ execute }, { readBody, headers }, options)).code).toBe("idempotency_key_invalid");
    expect(steps.splice(0)).toEqual([]);
    expect(problem(await ask({ execute }, { readBody }, options)).code).toBe("idempotency_request_invalid");
    expect(steps.splice(0)).toEqual(["body"]);
    steps.push("ok");
    expect((await ask({ execute }, { readBody }, options)).status).toBe(201);
    expect(steps).toEqual(["ok", "body", "scope", "authorize", "look-up"]);
  });

  it("asks authorize of a capture without a key too, where none is required", async () => {
    const { operation } = fake({ runKind: "capture" });
    const keyless = exchange({ headers: { "idempotency-key": [] } });
    const handler = () => Promise.reject(new Error("nobody runs it here"));
    const asked = (allowed: boolean) =>
      bind(operation, { scope, requireKey: false, authorize: () => allowed }).capture(keyless, handler);
    expect(await asked(false)).toMatchObject({ kind: "answer", answer: { status: 403 } });
    expect(await asked(true)).toEqual({ kind: "pass" });
  });

  it("asks nobody who was refused by authorize, and passes a throw of it on", async () => {
    const { operation, requests } = fake();
    const refusing = bind(operation, { scope, authorize: async () => false });
    const refused = await refusing.answer(exchange());
    expect(problem(refused)).toMatchObject({ status: 403, state: "none" });
    const forbidden = new Error("forbidden");
    const throwing = bind(operation, { scope, authorize: () => Promise.reject(forbidden) });
    await expect(throwing.answer(exchange())).rejects.toBe(forbidden);
    expect(requests).toEqual([]);
  });

  it("runs nothing under a malformed scope", async () => {
    const { operation, requests } = fake();
    const gate = bind(operation, { scope: () => ({ tenant: "", client: null }) });
    await expect(gate.answer(exchange())).rejects.toMatchObject({ code: "oncekey_scope_invalid" });
    expect(requests).toEqual([]);
  });
});

describe("bind", () => {
  it("refuses a binding without scope, and a profile that does not exist", () => {
    expect(() => bind(fake().operation, {} as never)).toThrow(
      expect.objectContaining({ code: "oncekey_scope_invalid" }),
    );
    const other = fake({ settings: { profile: "nosuch" } }).operation;
    expect(() => bind(other, { scope })).toThrow(expect.objectContaining({ code: "oncekey_profile_unknown" }));
  });

  it("refuses safe methods for operations, and passes them by for captured handlers", async () => {
    for (const method of ["GET", "HEAD", "OPTIONS"]) {
      await expect(ask({}, { method })).rejects.toMatchObject({ code: "oncekey_config_invalid" });
      const gate = bind(fake({ runKind: "capture" }).operation, { scope });
      expect(await gate.capture(exchange({ method }), () => Promise.reject(new Error("ran")))).toEqual({
        kind: "pass",
      });
    }
  });

  it("refuses to answer for a capture that has no handler", async () => {
    await expect(ask({ runKind: "capture" })).rejects.toMatchObject({ code: "oncekey_config_invalid" });
  });
});

describe("a captured handler's answer", () => {
  const captured = (given: AnyResult) => {
    const { operation } = fake({
      runKind: "capture",
      execute: async (request) => {
        await request.handler?.(new AbortController().signal);
        return given;
      },
    });
    return bind(operation, { scope }).capture(exchange(), async () => outcome);
  };

  it("goes out where its result stands, and is forgotten where it does not", async () => {
    for (const kind of ["completed", "provisional", "not_begun", "unprotected"] as const) {
      expect((await captured({ kind, outcome })).kind).toBe("handler");
    }
    for (const given of [
      { kind: "replayed", outcome },
      { kind: "lease_lost", retryAfterMs: 1 },
    ] as const) {
      expect((await captured(given)).kind).toBe("answer");
    }
  });

  it("comes from one run of the handler, even if the engine turns to it again", async () => {
    let runs = 0;
    const { operation } = fake({
      runKind: "capture",
      async execute({ handler }) {
        const signal = new AbortController().signal;
        await handler?.(signal);
        return { kind: "unprotected", outcome: (await handler?.(signal)) ?? outcome };
      },
    });
    const handled = await bind(operation, { scope }).capture(exchange(), async () => {
      runs++;
      return outcome;
    });
    expect(handled).toMatchObject({ kind: "answer", answer: { status: 503 } });
    expect(runs).toBe(1);
  });

  it("is a replay where another request ran the handler", async () => {
    const { operation } = fake({ runKind: "capture" });
    const handled = await bind(operation, { scope }).capture(exchange(), () => Promise.reject(new Error("ran")));
    expect(handled.kind).toBe("answer");
  });
});

describe("bodies that an earlier parser consumed", () => {
  const parsed = (value: unknown, type = "application/json", options?: Partial<BindingOptions<unknown>>) =>
    ask({}, { body: { kind: "parsed", value }, headers: { "content-type": [type] } }, options);

  it("are compared like the bytes they came from", async () => {
    const { operation, requests } = fake();
    const gate = bind(operation, { scope });
    await gate.answer(exchange({ body: { kind: "parsed", value: { b: [1.5, "x"], a: null } } }));
    await gate.answer(exchange({ body: { kind: "bytes", bytes: Buffer.from('{"a":null,"b":[1.50,"x"]}') } }));
    const [first, second] = await Promise.all(
      requests.map(({ proof }) => proof.fingerprint(proof.ring.form(proof.compare))),
    );
    expect(first).toEqual(second);
    expect(requests[0]?.proof.wireDigest).toBeNull();
  });

  it("are refused with a number that the parser may have changed, unless the route allows it", async () => {
    const value = { lines: [{ amount: 2 ** 53 }] };
    const refused = await parsed(value);
    expect(problem(refused)).toMatchObject({ status: 400, code: "idempotency_request_invalid" });
    expect(problem(refused).detail).toContain("before the parser");
    expect((await parsed(value, "application/json", { allowUnsafeNumbers: true })).status).toBe(201);
  });

  it("are refused where the value cannot be the whole body", async () => {
    const accepts = ["multipart", "raw"] as const;
    for (const type of ["multipart/form-data; boundary=x", "text/plain"]) {
      await expect(parsed({}, type, { accepts })).rejects.toMatchObject({ code: "oncekey_body_consumed" });
    }
  });
});

describe("what is compared", () => {
  const print = async (given: FakeOptions, at: Parameters<typeof exchange>[0]) => {
    const { operation, requests } = fake(given);
    await bind(operation, { scope }).answer(exchange(at));
    const proof = requests[0]?.proof;
    const fingerprint = await proof?.fingerprint(proof.ring.form(proof.compare));
    return { fingerprint: Buffer.from(fingerprint ?? []), wire: Buffer.from(proof?.wireDigest ?? []) };
  };

  it("is free of scheme, host, fragment and needless encoding, but not of the exact digest", async () => {
    const want = await print({}, { target: "/v1/orders?x=1" });
    for (const target of ["http://a.example/v1/orders?x=1", "/v1/orders?x=1#top", "/v1/%6frders?x=%31"]) {
      const got = await print({}, { target });
      expect(got.fingerprint.equals(want.fingerprint)).toBe(true);
      expect(got.wire.equals(want.wire)).toBe(false);
    }
    expect((await print({}, { target: "/v1/orders?x" })).fingerprint.equals(want.fingerprint)).toBe(false);
  });

  it("holds the chosen headers, and leaves the chosen query members out", async () => {
    const definition = { fingerprintHeaders: ["X-Api-Version"], ignoreQuery: ["trace"] };
    const at = (version: string, trace: string) => ({
      target: `/v1/orders?trace=${trace}`,
      headers: { "x-api-version": [version] },
    });
    const want = await print({ definition }, at("1", "a"));
    const other = await print({ definition }, at("2", "a"));
    const traced = await print({ definition }, at("1", "b"));
    expect(traced.fingerprint.equals(want.fingerprint)).toBe(true);
    expect(other.fingerprint.equals(want.fingerprint)).toBe(false);
  });

  it("may be the validated input, which knows no transport", async () => {
    const rules = { compare: "input" } as const;
    const json = await print({ rules }, { target: "/a" });
    const other = await print({ rules }, { target: "/b" });
    expect(other.fingerprint.equals(json.fingerprint)).toBe(true);
    expect(other.wire.equals(json.wire)).toBe(false);
  });
});
