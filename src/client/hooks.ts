/**
 * Keys for HTTP clients that have retries already: a wrapped `fetch`, and hooks to be handed to axios, ky and got. The key is
 * made at the first attempt of a call and kept over all of them. No client is imported: only the members used here are matched.
 */

import { refuse } from "./error.ts";
import { type KeyOptions, type KeyRule, keyRule } from "./with-idempotency.ts";

export {
  type FetchLike,
  type IdempotentFetch,
  type KeyOptions,
  type WithIdempotencyOptions,
  withIdempotency,
} from "./with-idempotency.ts";

/** What is used of axios's request configuration. */
export interface AxiosRequest {
  method?: string;
  data?: unknown;
  headers: { has(name: string): boolean; set(name: string, value: string): unknown };
}

/** What is used of the request that ky hands to its hooks. */
export interface KyRequest {
  readonly method: string;
  readonly headers: { has(name: string): boolean; set(name: string, value: string): void };
}

/** What is used of the options that got hands to its hooks. */
export interface GotRequest {
  readonly method: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body?: unknown;
}

/** What ky and got tell of an attempt. */
export interface Attempt {
  /** 0 for the first attempt of a call. */
  readonly retryCount: number;
}

/**
 * For axios: `api.interceptors.request.use(keyForAxios())`. A retry that dispatches the failed call's `config` again keeps its
 * key, because the key is a header of that configuration; a new call with a configuration of its own gets a new one. Raises
 * `oncekey_submission_invalid` where a stream would be sent a second time.
 */
export function keyForAxios(options: KeyOptions = {}): <Request extends AxiosRequest>(config: Request) => Request {
  const rule = keyRule(options);
  return (config) => {
    const { headers, method = "get", data } = config;
    if (!rule.applies(method)) return config;
    rule.sendOnce(data);
    if (!headers.has(rule.header)) headers.set(rule.header, rule.mint());
    return config;
  };
}

/**
 * For ky: `ky.create({ hooks: { beforeRequest: [keyForKy()] } })`, as the first of its hooks. ky copies the request before it
 * sends it, with the key on it. Raises `oncekey_submission_invalid` where another hook took the key away before a retry.
 */
export function keyForKy(options: KeyOptions = {}): (request: KyRequest, options: unknown, attempt: Attempt) => void {
  const rule = keyRule(options);
  return ({ method, headers }, _options, attempt) => {
    if (rule.applies(method) && !headers.has(rule.header)) headers.set(rule.header, firstKey(rule, attempt));
  };
}

/**
 * For got: `got.extend({ hooks: { beforeRequest: [keyForGot()] } })`. got keeps its options, and with them the key, over all
 * attempts. Raises `oncekey_submission_invalid` where another hook took the key away before a retry, and where a stream, a
 * generator or a `FormData` (which got reads as one) would be sent a second time.
 */
export function keyForGot(options: KeyOptions = {}): (request: GotRequest, attempt: Attempt) => void {
  const rule = keyRule(options);
  // got writes the names of headers in lower case.
  const header = rule.header.toLowerCase();
  return ({ method, headers, body }, attempt) => {
    if (!rule.applies(method)) return;
    rule.sendOnce(body);
    headers[header] ??= firstKey(rule, attempt);
  };
}

/** A key for a first attempt. Where a repetition has none, a new one would be a second key for one action. */
function firstKey(rule: KeyRule, { retryCount }: Attempt): string {
  if (retryCount === 0) return rule.mint();
  refuse(
    "A retry came without the key of its first attempt, because another hook took it off: let that hook keep the header",
  );
}
