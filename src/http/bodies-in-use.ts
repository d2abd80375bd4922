import type { ReadBody } from "./body.ts";

/**
 * The bodies of the requests that a binding is answering, one for each key. An exact duplicate takes the body of the request
 * that it repeats: it is not parsed again, and however many wait, and however long their bodies are, the bytes are held once.
 */
export interface BodiesInUse {
  /** The body of the request that came first with the key. */
  of(key: string): ReadBody | undefined;
  /** Lends a body to whoever comes with the key, until the returned function is called. */
  lend(key: string, body: ReadBody): () => void;
}

/** Bodies of which there are none yet. */
export function bodiesInUse(): BodiesInUse {
  const byKey = new Map<string, ReadBody>();
  return {
    of: (key) => byKey.get(key),
    lend(key, body) {
      // Of a raw body, and of a file in a multipart one, an operation gets the very bytes, and may change them.
      const isSafe = body.form.kind === "json" || body.form.kind === "form";
      if (body.wire === null || !isSafe || byKey.has(key)) return nothing;
      byKey.set(key, body);
      return () => void byKey.delete(key);
    },
  };
}

const nothing = () => {};
