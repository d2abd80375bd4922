/** Bytes of answers that may be on their way to the store at a time: each is there two or three times over. */
const STORING_BYTES = 16 * 1_048_576;
/** What an answer counts at most: a longer one goes there in chunks, or not at all. */
const MOST_COUNTED = 524_288;

/** The turn of one answer to be stored. */
export interface StoringTurn {
  /** Waits, in the order of the calls, until an answer of so many bytes may go to the store. */
  enter(bytes: number): Promise<void>;
  /** It has been stored, or nobody waits for it any more. Calling it again does nothing. */
  leave(): void;
}

/** The turns of one instance: a thousand answers at one instant must not lie in the driver's queue together. */
export interface StoringTurns {
  turn(): StoringTurn;
}

/** Turns of which none is taken. */
export function storingTurns(): StoringTurns {
  const waiting = new Set<{ readonly weight: number; go(): void }>();
  let taken = 0;
  const goOn = (): void => {
    for (const next of waiting) {
      if (taken + next.weight > STORING_BYTES) return;
      waiting.delete(next);
      taken += next.weight;
      next.go();
    }
  };
  return {
    turn() {
      let leave = () => {};
      return {
        enter(bytes) {
          return new Promise((resolve) => {
            const place = { weight: Math.min(bytes, MOST_COUNTED), go: resolve };
            waiting.add(place);
            leave = () => {
              leave = () => {};
              // One that left its place in the queue is not held up there.
              if (waiting.delete(place)) return resolve();
              taken -= place.weight;
              goOn();
            };
            goOn();
          });
        },
        leave: () => leave(),
      };
    },
  };
}
