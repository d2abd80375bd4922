/** The program behind `npm run bench:flame`: new requests and retries through a gate over the memory store, for so long. */
import { jsonBody } from "./body.ts";
import { memoryGate } from "./gate.ts";
import { exchangeOf } from "./request.ts";

const KEYS = 2_000;

async function load(forMs: number, bytes: number): Promise<void> {
  const body = jsonBody(bytes);
  const endAtMs = performance.now() + forMs;
  let requests = 0;
  while (performance.now() < endAtMs) {
    const gate = await memoryGate();
    for (let made = 0; made < KEYS && performance.now() < endAtMs; made++) {
      const asked = () => gate.answer(exchangeOf(body, `key-${made}`));
      await asked();
      // One retry for each new request: both paths are seen.
      await asked();
      requests += 2;
    }
  }
  process.stdout.write(`${requests} requests of ${bytes} bytes in ${forMs} ms\n`);
}

const [forMs = "5000", bytes = "1024"] = process.argv.slice(2);
await load(Number(forMs), Number(bytes));
