import { afterAll, beforeAll, describe, it } from "vitest";
import { claiming, losing } from "./orm-claims.ts";
import { committing } from "./orm-commits.ts";
import { nesting } from "./orm-nesting.ts";
import { type Orm, type OrmWorld, ormWorld } from "./orm-world.ts";

export type { Orm } from "./orm-world.ts";

const CASES = { ...committing, ...nesting, ...claiming, ...losing };

/**
 * What must hold on the whole engine for business code that writes through its own ORM. `make` gets the address of a
 * migrated database with the tables `booking` and `seat`, and how many connections it may open.
 */
export function ormSuite<Tx>(name: string, make: (url: string, connections: number) => Promise<Orm<Tx>>): void {
  describe(`business code on ${name}`, () => {
    let world: OrmWorld;
    beforeAll(async () => {
      world = await ormWorld(make as (url: string, connections: number) => Promise<Orm<unknown>>);
    });
    // Before the database goes away.
    afterAll(() => world.orm.close());
    for (const [sentence, check] of Object.entries(CASES)) it(sentence, () => check(world));
  });
}
