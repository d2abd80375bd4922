import { defineConfig } from "vitest/config";

export default defineConfig({
  // Tests import the package by its public names, as a user would; the condition maps them to the sources.
  resolve: { conditions: ["oncekey-source"] },
  ssr: { resolve: { conditions: ["oncekey-source"] } },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: [
      "test/support/postgres-global.ts",
      "test/support/brokers/global.ts",
      "test/e2e/support/programs-global.ts",
    ],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Most test files wait for servers and processes, so two workers pay even on two cores (the default there is one).
    maxWorkers: 2,
  },
});
