import { defineConfig } from "vitest/config";

/** Runs these examples in a checkout, where `oncekey` is the sources beside them, without databases and brokers. */
export default defineConfig({
  resolve: { conditions: ["oncekey-source"] },
  ssr: { resolve: { conditions: ["oncekey-source"] } },
  test: { include: ["*.vitest.ts"] },
});
