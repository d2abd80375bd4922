/** One key of a ring. */
export interface RingKey {
  /** 1 to 255, never used again for another key. */
  readonly id: number;
  readonly bytes: Uint8Array;
}

/**
 * The ring that a variable holds, newest first: `2:<base64>,1:<base64>`, 32 bytes each, as `oncekey rotate` takes it too;
 * empty where it is not set. Raises an error that names the variable and repeats nothing of it.
 */
export function keyRing(env: NodeJS.ProcessEnv, name: string): RingKey[] {
  const items = (env[name] ?? "").split(/[\s,]+/).filter((item) => item !== "");
  return items.map((item) => {
    const [, digits = "", base64 = ""] = /^(\d{1,3}):([A-Za-z0-9+/_-]{43}=?)$/.exec(item) ?? [];
    const bytes = new Uint8Array(Buffer.from(base64, "base64"));
    if (bytes.length === 32) return { id: Number(digits), bytes };
    throw new Error(`${name} must be a list like 2:<32 bytes in base64>,1:<…>, newest first. Nothing was started.`);
  });
}
