import { defineConfig } from "vitest/config";

export default defineConfig({
  // Tests import the package by its public names, as a user would; the condition maps them to the sources.
  resolve: { conditions: ["oncekey-source"] },
  ssr: { resolve: { conditions: ["oncekey-source"] } },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
  },
});
