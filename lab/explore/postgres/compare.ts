/** Tells two runs' values apart by what they say, where owner tokens are random on one side. */
export interface Comparable {
  /** A value as text: members in order, tokens called by the order in which they were first seen, instants rounded. */
  text(value: unknown): string;
}

const TOKEN_BYTES = 16;

/** Makes one for one side of a comparison. */
export function comparable(): Comparable {
  const tokens = new Map<string, string>();
  const tokenName = (hex: string) => {
    const name = tokens.get(hex) ?? `token ${tokens.size + 1}`;
    tokens.set(hex, name);
    return name;
  };
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) {
      const hex = Buffer.from(value).toString("hex");
      return value.length === TOKEN_BYTES ? tokenName(hex) : `0x${hex}`;
    }
    if (value instanceof Date) return new Date(Math.round(value.getTime())).toISOString();
    if (typeof value === "bigint") return `${value}n`;
    // The database keeps microseconds, and gives them as a fraction of milliseconds.
    if (typeof value === "number") return Math.round(value * 100) / 100;
    if (value instanceof Error) return `${value.name} ${(value as { kind?: unknown }).kind ?? ""}`;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== "object" || value === null) return value;
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(
      members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, plain(member)]),
    );
  };
  return { text: (value) => JSON.stringify(plain(value)) ?? "nothing" };
}
