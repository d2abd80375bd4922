/** The headers of a request: a `Headers` object, Node's `req.headers`, or a plain object. Names in any case. */
export type WebhookHeaders =
  | Iterable<readonly [name: string, value: string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Reads one header: its lines joined as HTTP joins them, or `null`. */
export type ReadHeader = (name: string) => string | null;

/** Reads headers whatever their form. A header that came twice is one joined value, which no signature then fits. */
export function headerReader(headers: WebhookHeaders): ReadHeader {
  const values = new Map<string, string>();
  const given = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  for (const [name, value] of given) {
    if (value === undefined) continue;
    const text = typeof value === "string" ? value : value.join(", ");
    const before = values.get(name.toLowerCase());
    values.set(name.toLowerCase(), before === undefined ? text : `${before}, ${text}`);
  }
  return (name) => values.get(name.toLowerCase()) ?? null;
}
