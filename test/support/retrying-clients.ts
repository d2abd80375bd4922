import axios, { type AxiosError } from "axios";
import got, { type RequestError } from "got";
import ky, { type HTTPError, type Input } from "ky";
import { type KeyOptions, keyForAxios, keyForGot, keyForKy, withIdempotency } from "oncekey/client/hooks";

/** One call of the application, as each client takes it. */
export interface Call {
  readonly method?: string;
  readonly json?: unknown;
  /** In place of `json`. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** A client with its hook, that repeats what failed. */
export interface RetryingClient {
  readonly name: string;
  /** Sends until there is a good answer, `retries` repetitions at most; resolves with the status of the last answer. */
  send(url: string, call: Call, options?: KeyOptions & { readonly retries?: number }): Promise<number>;
}

const RETRIES = 5;
/** What a repetition may change. */
const RETRIED = [409, 500, 503];

/** The loop that a package for retries runs, without its pauses: it knows nothing of what it repeats. */
export async function repeated<Value>(attempt: () => Promise<Value>, retries = RETRIES): Promise<Value> {
  for (let left = retries; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

/** Resolves with the status; a status that is worth a repetition is raised, as the loop wants it. */
export async function statusOf(response: Promise<Response>): Promise<number> {
  const { status, text } = await response.then(async (got) => ({ status: got.status, text: await got.text() }));
  if (RETRIED.includes(status)) throw new Error(`status ${status}: ${text}`);
  return status;
}

function init({ method = "POST", json, body = JSON.stringify(json), headers }: Call): RequestInit {
  const type = json === undefined ? {} : { "content-type": "application/json" };
  return { method, body: body as BodyInit, headers: { ...type, ...headers }, ...{ duplex: "half" } };
}

const sameInit: RetryingClient = {
  name: "fetch, the same init again",
  send(url, call, { retries, ...options } = {}) {
    const send = withIdempotency(fetch, options);
    const one = init(call);
    return repeated(() => statusOf(send(url, one)), retries);
  },
};

const action: RetryingClient = {
  name: "fetch, an action and a new init for each attempt",
  send(url, call, { retries, ...options } = {}) {
    const send = withIdempotency(fetch, options).action();
    return repeated(() => statusOf(send(url, init(call))), retries);
  },
};

const withAxios: RetryingClient = {
  name: "axios, dispatching the failed configuration again",
  async send(url, { method = "POST", json, body = json, headers = {} }, { retries = RETRIES, ...options } = {}) {
    const api = axios.create();
    api.interceptors.request.use(keyForAxios(options));
    let left = retries;
    api.interceptors.response.use(undefined, (error: AxiosError) => {
      const worth = error.response === undefined || RETRIED.includes(error.response.status);
      if (error.config === undefined || !worth || left-- === 0) throw error;
      return api(error.config);
    });
    return (await api.request({ url, method, data: body, headers })).status;
  },
};

const withKy: RetryingClient = {
  name: "ky",
  async send(url, { method = "POST", json, body, headers }, { retries = RETRIES, ...options } = {}) {
    const retry = { methods: ["post", "put", "patch", "delete"], limit: retries, delay: () => 1, statusCodes: RETRIED };
    const api = ky.create({
      hooks: { beforeRequest: [keyForKy(options)] },
      retry: { ...retry, methods: [...retry.methods] } as never,
    });
    const content = json === undefined ? { body: body as BodyInit } : { json };
    return (await api(url as Input, { method, ...content, ...(headers && { headers }) })).status;
  },
};

const withGot: RetryingClient = {
  name: "got",
  async send(url, { method = "POST", json, body, headers }, { retries = RETRIES, ...options } = {}) {
    const api = got.extend({
      hooks: { beforeRequest: [keyForGot(options)] },
      retry: {
        methods: ["POST", "PUT", "PATCH", "DELETE"],
        limit: retries,
        statusCodes: RETRIED,
        backoffLimit: 1,
        noise: 0,
      },
    });
    const content = json === undefined ? { body: body as string } : { json };
    return (await api(url, { method: method as "POST", ...content, ...(headers && { headers }) })).statusCode;
  },
};

/** The clients, each as an application would set it up. */
export const retryingClients: readonly RetryingClient[] = [sameInit, action, withAxios, withKy, withGot];

/** What one client's failure says, whatever it wrapped the cause in. */
export function saidBy(error: unknown): string {
  const { message, cause } = error as AxiosError | HTTPError | RequestError;
  return cause === undefined ? message : `${message} / ${saidBy(cause)}`;
}
