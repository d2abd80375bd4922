import { AssertionError } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import Koa from "koa";
import { type ExpectOnceOptions, expectOnce, type OnceAction } from "oncekey/testing";
import { describe, expect, it } from "vitest";

type Handler = (key: string, request: Request) => Promise<Response>;

/** An endpoint written by hand, with its own idea of what a key is for. */
function endpoint(handle: (effects: string[]) => Handler) {
  const effects: string[] = [];
  const handler = handle(effects);
  const app = (request: Request) => handler(request.headers.get("idempotency-key") ?? "", request);
  const run = (options: Partial<ExpectOnceOptions> = {}) =>
    expectOnce({ app, request: { path: "/orders", body: { amount: 5 } }, effects: () => effects.length, ...options });
  return { effects, run };
}

const madeOf = (body: object, init: ResponseInit = {}) => Response.json(body, { status: 201, ...init });
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function messageOf(run: Promise<void>): Promise<string> {
  const error: unknown = await run.then(
    () => null,
    (raised: unknown) => raised,
  );
  expect(error).toBeInstanceOf(AssertionError);
  return (error as AssertionError).message;
}

/** Claims the key at once, and lets duplicates wait for the run's answer: right in one process. */
const rightHandler = (effects: string[]): Handler => {
  const answers = new Map<string, Promise<object>>();
  return async (key) => {
    const body = answers.get(key) ?? Promise.resolve().then(() => ({ order: effects.push(key) }));
    answers.set(key, body);
    return madeOf(await body);
  };
};

describe("expectOnce lets pass", () => {
  it("a handler that claims the key before its effect and replays its answer", async () => {
    const { run, effects } = endpoint(rightHandler);
    await run();
    // One for each of the three scenarios.
    expect(effects).toHaveLength(3);
    expect(new Set(effects).size).toBe(3);
  });

  it("a duplicate that is told to come back while the first request runs", async () => {
    const { run } = endpoint((effects) => {
      const states = new Map<string, object | "running">();
      return async (key) => {
        const state = states.get(key);
        if (state === "running") return new Response(null, { status: 409, headers: { "retry-after": "1" } });
        if (state !== undefined) return madeOf(state);
        states.set(key, "running");
        await turn();
        states.set(key, { order: effects.push(key) });
        return madeOf({ order: effects.length });
      };
    });
    await run();
  });

  it("a refusal, which has no effect", async () => {
    const { run } = endpoint(() => async () => Response.json({ code: "limit_reached" }, { status: 422 }));
    await run({ expected: 0 });
  });

  it("a 500 that a retry gets over, where faults are planted", async () => {
    const failing = () =>
      endpoint((effects) => {
        const right = rightHandler(effects);
        let failures = 0;
        return async (key, request) => {
          if (failures++ % 2 === 0) return new Response("down", { status: 500 });
          return right(key, request);
        };
      });
    await failing().run({ faults: true });
    expect(await messageOf(failing().run())).toContain("500 down");
  });

  it("calls, whose values are compared as they are", async () => {
    const rows = new Map<string, { id: number }>();
    const call = async (key: string) => {
      const row = rows.get(key) ?? { id: rows.size + 1 };
      rows.set(key, row);
      return row;
    };
    await expectOnce({ call, effects: () => rows.size });
  });
});

describe("expectOnce finds", () => {
  it("a handler that looks at no key at all, and says what to do about it", async () => {
    const { run } = endpoint((effects) => async (key) => madeOf({ order: effects.push(key) }));
    expect(await messageOf(run())).toBe(
      [
        "POST /orders: 3 effects instead of 1 (the answer was lost, the client tried again).",
        "",
        "Seen under one key:",
        '  1 × sent, its answer lost: 201 {"order":1}',
        '  1 × sent after that: 201 {"order":2}',
        '  1 × sent after that: 201 {"order":3}',
        "",
        "What it means: A retry was run as if it were new: the handler did not find the key of the first request.",
        "How to mend it: Store the key in the transaction of the effect, and answer a known key from what was stored.",
      ].join("\n"),
    );
  });

  it("a handler that looks the key up, and stores it later", async () => {
    const { run } = endpoint((effects) => {
      const answers = new Map<string, object>();
      return async (key) => {
        const known = answers.get(key);
        if (known !== undefined) return madeOf(known);
        await turn();
        const body = { order: effects.push(key) };
        answers.set(key, body);
        return madeOf(body);
      };
    });
    // The page shows this very message.
    const page = readFileSync(new URL("../../docs/testing.md", import.meta.url), "utf8");
    const shown = /^```text\n([\s\S]*?)\n```$/m.exec(page)?.[1];
    expect(shown).toContain("3 effects instead of 1 (duplicates at one moment)");
    expect(await messageOf(run())).toBe(shown);
  });

  it("a handler that forgets its answer when the client hangs up", async () => {
    const { run } = endpoint((effects) => {
      const right = rightHandler(effects);
      const hungUp = new Set<string>();
      return async (key, request) => {
        if (hungUp.has(key)) return right(key, request);
        request.signal.addEventListener("abort", () => hungUp.add(key));
        await turn();
        await turn();
        if (!hungUp.has(key)) return right(key, request);
        // The effect is made; who would want the answer?
        effects.push(key);
        return new Response(null, { status: 499 });
      };
    });
    const message = await messageOf(run());
    expect(message).toContain("2 effects instead of 1 (the client hung up before the answer and tried again)");
    expect(message).toContain("Do not tie the work to the connection");
  });

  it("an effect that a hung-up run has only after the retries were answered", async () => {
    const effects: string[] = [];
    const seen = new Map<string, number>();
    const answered = new Map<string, () => void>();
    const listener = async (req: IncomingMessage, res: ServerResponse) => {
      const key = String(req.headers["idempotency-key"]);
      const nth = (seen.get(key) ?? 0) + 1;
      seen.set(key, nth);
      if (nth === 1) {
        await new Promise<void>((resolve) => answered.set(key, resolve));
        for (let turns = 0; turns < 50; turns += 1) await turn();
      }
      if (nth < 3) effects.push(key);
      res.end("done");
      if (nth === 3) answered.get(key)?.();
    };
    const run = expectOnce({
      app: listener,
      request: { path: "/orders" },
      effects: () => effects.length,
      scenarios: ["hang_up"],
    });
    expect(await messageOf(run)).toContain("2 effects instead of 1 (the client hung up");
  });

  it("a duplicate that meets a unique index and gets a 500", async () => {
    const { run } = endpoint((effects) => async (key) => {
      if (effects.includes(key)) return new Response("duplicate key value", { status: 500 });
      return madeOf({ order: effects.push(key) });
    });
    const message = await messageOf(run());
    expect(message).toContain("a duplicate failed: 500 duplicate key value");
    expect(message).toContain("A duplicate met the first request's claim or row as an error");
  });

  it("a duplicate that throws, in a call", async () => {
    const seen = new Set<string>();
    const call = async (key: string) => {
      if (seen.has(key)) throw new RangeError("already there");
      seen.add(key);
      return "ok";
    };
    const message = await messageOf(expectOnce({ call, effects: () => seen.size }));
    expect(message).toContain("The call: a duplicate failed: threw RangeError: already there");
  });

  it("a duplicate that is refused for good", async () => {
    const { run } = endpoint((effects) => async (key) => {
      if (effects.includes(key)) return Response.json({ error: "exists" }, { status: 409 });
      return madeOf({ order: effects.push(key) });
    });
    const message = await messageOf(run());
    expect(message).toContain("two answers to one key");
    expect(message).toContain('1 × sent, its answer lost: 201 {"order":1}');
    expect(message).toContain('2 × sent after that: 409 {"error":"exists"}');
    expect(message).toContain("A 409 that only means “still running” needs a Retry-After");
  });

  it("a replay whose body is made anew", async () => {
    let clock = 0;
    const { run } = endpoint((effects) => async (key) => {
      if (!effects.includes(key)) effects.push(key);
      clock += 1;
      return madeOf({ order: key.length, at: clock });
    });
    expect(await messageOf(run())).toContain("The answer was made anew for the duplicate");
  });

  it("a replay that lacks a header", async () => {
    const { run } = endpoint((effects) => async (key) => {
      if (effects.includes(key)) return madeOf({});
      effects.push(key);
      return madeOf({}, { headers: { location: "/orders/1" } });
    });
    expect(await messageOf(run())).toContain("A header that clients read is missing or different in the replay");
  });

  it("a key that nobody frees", async () => {
    const { run } = endpoint((effects) => async (key) => {
      if (effects.includes(key)) return new Response(null, { status: 409, headers: { "retry-after": "1" } });
      effects.push(key);
      return madeOf({});
    });
    const message = await messageOf(run({ time: { advance: async () => {} }, patienceMs: 5_000 }));
    expect(message).toContain("a request was told to come back 6 times: 409");
    expect(message).toContain("The key is held by a run that has ended or died: nobody frees it.");
  });

  it("an answer that comes before its effect, or without it", async () => {
    const { run } = endpoint(() => async () => madeOf({ order: 1 }));
    const message = await messageOf(run());
    expect(message).toContain("0 effects instead of 1, though the answer was final");
    expect(message).toContain("Answer after the commit, never before");
  });

  it("a request that its handler refuses, so that nothing is tested", async () => {
    const { run } = endpoint(() => async () => new Response("who are you?", { status: 401 }));
    expect(await messageOf(run())).toContain("The request was refused, so that nothing of interest was tested.");
  });

  it("a request that never ends", async () => {
    const { run } = endpoint(() => () => new Promise(() => {}));
    const message = await messageOf(run({ time: { advance: turn }, patienceMs: 100 }));
    expect(message).toContain("no request succeeded: no answer within 100 ms");
  });

  it("a scenario that its action cannot live through", async () => {
    const action: ExpectOnceOptions & OnceAction = { call: async () => 1, effects: () => 0, scenarios: ["hang_up"] };
    await expect(expectOnce(action)).rejects.toThrow("expectOnce can run lost_answer, concurrent here");
  });

  it("a server that does not run, and says how to tell that from a fault of the handler", async () => {
    const request = { path: "/orders" };
    const message = await messageOf(expectOnce({ app: "http://127.0.0.1:1", request, effects: () => 0 }));
    expect(message).toContain("no request succeeded: threw Error: connect ECONNREFUSED");
    expect(message).toContain("How to mend it: Send the request once without this test.");
    expect(message).toContain("its server does not run");
    expect(message).toContain("free the key when a run fails");
    expect(message).not.toContain("Answer a duplicate");
  });

  it("names the request whose client hung up among what was seen", async () => {
    const { run } = endpoint((effects) => async (key) => madeOf({ order: effects.push(key) }));
    expect(await messageOf(run({ scenarios: ["hang_up"] }))).toContain(
      'Seen under one key:\n  1 × sent, the client hung up: no answer\n  1 × sent after that: 201 {"order":2}\n',
    );
  });
});

describe("expectOnce with a Node listener", () => {
  const testing = (
    app: (req: IncomingMessage, res: ServerResponse) => unknown,
    more: Partial<ExpectOnceOptions> = {},
  ) => expectOnce({ app, request: { path: "/orders" }, effects: () => 0, expected: 0, ...more });

  it.each([
    ["rejects", async () => Promise.reject(new RangeError("no database"))],
    [
      "throws",
      () => {
        throw new RangeError("no database");
      },
    ],
  ])("fails where it %s, and the test run lives on", async (_how, fail) => {
    const message = await messageOf(testing((_req, _res) => fail()));
    expect(message).toContain("no request succeeded: threw RangeError: no database");
  });

  it("fails where only a duplicate makes it reject", async () => {
    const seen = new Set<unknown>();
    const message = await messageOf(
      testing(async (req, res) => {
        const key = req.headers["idempotency-key"];
        if (seen.has(key)) throw new RangeError("already there");
        seen.add(key);
        res.end("done");
      }),
    );
    expect(message).toContain("a duplicate failed: threw RangeError: already there");
  });

  it("fails where it rejects once its answer is under way", async () => {
    const message = await messageOf(
      testing(async (_req, res) => {
        res.write("half of ");
        throw new RangeError("the other half");
      }),
    );
    expect(message).toContain("no request succeeded: threw RangeError: the other half");
  });

  it("fails where it rejects because its client has gone, unless faults are planted", async () => {
    const hungUp = new Set<unknown>();
    const listener = async (req: IncomingMessage, res: ServerResponse) => {
      const key = req.headers["idempotency-key"];
      if (!hungUp.has(key)) {
        hungUp.add(key);
        await new Promise((resolve) => res.once("close", resolve));
        throw new RangeError("write after end");
      }
      res.end("done");
    };
    const message = await messageOf(testing(listener, { scenarios: ["hang_up"] }));
    expect(message).toContain("the run whose client had gone failed: threw RangeError: write after end");
    expect(message).toContain("1 × sent, the client hung up: threw RangeError: write after end");
    await testing(listener, { scenarios: ["hang_up"], faults: true });
  });
});

describe("expectOnce refuses what is no application, as plain JavaScript may hand it over", () => {
  const opened = (app: unknown) =>
    expectOnce({ app: app as () => Response, request: { path: "/orders" }, effects: () => 0 });

  it("an http.Server, of which it wants the listener or the base URL", async () => {
    await expect(opened(createServer())).rejects.toThrow(
      /^An app may be a base URL, a Node listener .* Of an http\.Server give the listener, or its base URL once it listens\.$/,
    );
    await expect(opened(createServer())).rejects.toBeInstanceOf(TypeError);
  });

  it("a Koa application, of which it wants the callback", async () => {
    await expect(opened(new Koa())).rejects.toThrow(/Of a Koa application give app\.callback\(\)\.$/);
  });

  it.each([[null], [undefined], [42], [{}]])("%o", async (app) => {
    await expect(opened(app)).rejects.toThrow(/^An app may be .* a function that answers a Request\.$/);
  });
});
