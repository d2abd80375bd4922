import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { PrismaClient } from "./generated/client.ts";

export type { Prisma, PrismaClient } from "./generated/client.ts";

/** A client of Prisma 6, and the pool under it. The adapter takes pools of its own copy of `pg` only. */
export function prismaClient(connectionString: string, max: number): { client: PrismaClient; pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString, max });
  return { client: new PrismaClient({ adapter: new PrismaPg(pool) }), pool };
}
