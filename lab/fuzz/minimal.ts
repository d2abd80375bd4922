/** Most tries to make a finding smaller. */
const MOST_TRIES = 2_000;

/**
 * A smaller input of which `holds` is still true, by leaving out ever shorter pieces (delta debugging). The input itself
 * must be one. It ends after `mostTries`, by default 2,000.
 */
export async function minimal(
  input: Uint8Array,
  holds: (smaller: Uint8Array) => Promise<boolean>,
  mostTries = MOST_TRIES,
): Promise<Uint8Array> {
  let smallest = input;
  let tries = 0;
  for (let piece = Math.max(1, input.length >> 1); piece >= 1; piece = Math.floor(piece / 2)) {
    for (let at = 0; at < smallest.length && tries < mostTries; ) {
      const smaller = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + piece)]);
      tries++;
      if (await holds(smaller)) smallest = smaller;
      else at += piece;
    }
  }
  return smallest;
}
