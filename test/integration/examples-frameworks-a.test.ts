import { describe, expect, it } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { exampleCases, postTo, startExample } from "./support/framework-example.ts";

describe("examples of Node frameworks", () => {
  for (const name of ["node", "express", "express4", "fastify", "koa", "nest-express", "nest-fastify"]) {
    exampleCases(name);
  }

  it("keep orders and keys over a restart where they have a database", async () => {
    const { url: DATABASE_URL } = await createDatabase({ migrated: false });
    const answers: string[] = [];
    for (const marker of [null, "true"]) {
      const { url, stop } = await startExample("express", { env: { DATABASE_URL } });
      for (const [path, body] of [["/orders", { item: "book" }] as const, ["/refunds", { order: "ord_1" }] as const]) {
        const answer = await postTo(url, path, "key-1", body);
        expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([201, marker]);
        answers.push(await answer.text());
      }
      expect(await stop()).toBe(0);
    }
    expect(answers.slice(2)).toEqual(answers.slice(0, 2));
  });
});
