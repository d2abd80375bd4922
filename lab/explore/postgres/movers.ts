import { subjectDigest } from "../../../src/core/delivery.ts";
import type { Choice } from "../choices.ts";
import type { Deploy, World } from "../world.ts";

const SUBJECT = { tenant: "t", source: "s", subject: "x" };

/** Moves one subject that both processes want, in a transaction that has written a row. */
export const mover: Deploy = async ({ store }) => ({
  async attempt(request) {
    const moved = await store.transaction(async (session) => {
      await session.tx.insert("row", { of: request });
      return session.moveSubject(subjectDigest(SUBJECT), SUBJECT, 1n);
    });
    return { kind: "final", text: `moved: ${moved}, at ${await store.clockMs()}` };
  },
});

/** Two clients that want one row: the second waits until the first one's transaction has ended. */
export function moversWorld(deploy: Deploy = mover): World {
  const clientOf = (name: string, via: string) =>
    ({ kind: "client", name, request: name, identity: name, payload: "", via: [via], attempts: 1 }) as const;
  return {
    name: "movers",
    about: "two that move one subject",
    covers: [],
    budget: { crashes: 1, ticks: 1, pauses: 1 },
    processes: { A: deploy, B: deploy },
    actors: [clientOf("Ann", "A"), clientOf("Bob", "B")],
    invariants: [],
  };
}

/** To where B waits for A. */
export const BOTH_MOVE: readonly string[] = [
  ...["Ann asks A", "A inserts into row", "A moves the subject"],
  ...["Bob asks B", "B inserts into row", "B moves the subject"],
];

/** To the end of both. */
export const BOTH_END: readonly string[] = ["A commits", "B commits", "A asks for the time", "B asks for the time"];

/** Picks choices by their names, then ends the schedule. */
export function following(...labels: readonly string[]) {
  const wanted = [...labels];
  return (choices: readonly Choice[]): number => {
    const label = wanted.shift();
    return label === undefined ? -1 : choices.findIndex((choice) => choice.label === label);
  };
}
