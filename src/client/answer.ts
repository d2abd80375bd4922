import { fromBase64 } from "./bytes.ts";
import type { ClientResponse, HeaderPair, StoredSettlement } from "./submission.ts";

/** An answer as the caller gets it. The names of headers are in lower case, as `Headers` gives them. */
export function answerOf(status: number, headers: readonly HeaderPair[], body: Uint8Array): ClientResponse {
  const text = () => new TextDecoder().decode(body);
  return {
    status,
    headers,
    body,
    header: (name) => headers.find(([other]) => other === name.toLowerCase())?.[1] ?? null,
    text,
    json: () => JSON.parse(text()) as unknown,
  };
}

/** The answer of a settled submission. */
export function storedAnswer({ status, headers, bodyBase64 }: StoredSettlement): ClientResponse {
  return answerOf(status, headers, fromBase64(bodyBase64));
}

/** The body as JSON, or `undefined` where it is none. */
export function jsonOf(answer: ClientResponse): unknown {
  try {
    return answer.json();
  } catch {
    return undefined;
  }
}

/** The media type in lower case, with its parameters; empty where there is none. */
export function typeOf(answer: ClientResponse): string {
  return (answer.header("content-type") ?? "").toLowerCase();
}
