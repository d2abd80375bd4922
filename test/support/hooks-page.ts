import axios from "axios";
import ky from "ky";
import { createClient, memoryStorage } from "oncekey/client";
import { keyForAxios, keyForKy, withIdempotency } from "oncekey/client/hooks";

const BODY = '{"amount":1200}';
const { origin } = (globalThis as unknown as { readonly location: { readonly origin: string } }).location;
const headers = { "content-type": "application/json" };

/** A loop that repeats what failed, five times at most. */
async function repeated(attempt: () => Promise<{ readonly status: number }>, retries = 5): Promise<number> {
  for (let left = retries; ; left--) {
    try {
      const { status } = await attempt();
      if (status < 400) return status;
      throw new Error(`status ${status}`);
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

const ways = {
  "fetch, the same init again": (retries?: number) => {
    const send = withIdempotency(fetch);
    const init = { method: "POST", headers, body: BODY };
    return repeated(() => send("/things", init), retries);
  },
  "fetch, an action": (retries?: number) => {
    const send = withIdempotency(fetch).action();
    return repeated(() => send("/things", { method: "POST", headers, body: BODY }), retries);
  },
  "axios, dispatching the failed configuration again": (retries = 5) => {
    const api = axios.create();
    let left = retries;
    api.interceptors.request.use(keyForAxios());
    api.interceptors.response.use(undefined, (error) => {
      if (left-- === 0) throw error;
      return api(error.config);
    });
    return api.post("/things", BODY, { headers }).then(({ status }) => status);
  },
  ky: (retries = 5) => {
    const retry = { methods: ["post" as const], limit: retries, delay: () => 1 };
    const api = ky.create({ hooks: { beforeRequest: [keyForKy()] }, retry });
    return api.post(`${origin}/things`, { body: BODY, headers }).then(({ status }) => status);
  },
  createClient: async () => {
    const client = createClient({ storage: memoryStorage(), minPauseMs: 1, maxPauseMs: 2 });
    const result = await client.submit("one", { url: "/things", body: BODY, headers });
    return result.kind === "succeeded" ? result.response.status : 0;
  },
};

declare global {
  var hookWays: typeof ways;
}

globalThis.hookWays = ways;
