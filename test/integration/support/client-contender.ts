/**
 * A process that takes the lock of a submission again and again. Inside it asks the test and waits for its answer, so that
 * the test knows who is inside, and can end or stop a process exactly there.
 */
import { fileStorage } from "oncekey/client/file";

/** What a contender tells. `entered` and `leaving` wait for an answer. */
export type FromContender = "entered" | "leaving" | "left";

const { directory, name, rounds } = JSON.parse(process.env.CONTENDER_SETTINGS ?? "{}") as {
  directory: string;
  name: string;
  rounds: number;
};
const storage = fileStorage(directory);
// Also where nobody listens to it (no channel): it stays inside.
const awake = setInterval(() => {}, 60_000);

function ask(question: FromContender): Promise<void> {
  return new Promise((resolve) => {
    process.once("message", () => resolve());
    process.send?.(question);
  });
}

for (let round = 0; round < rounds; round++) {
  await storage.exclusively(name, async () => {
    await ask("entered");
    await ask("leaving");
  });
  process.send?.("left");
}
clearInterval(awake);
process.disconnect();
