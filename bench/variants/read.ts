import { listenerOf, sendJson } from "../host.ts";
import { INPUT } from "../invoice.ts";
import type { Variant } from "./variant.ts";

/** Reads one stored answer by its primary key and sends it: what a replay costs at the least. */
export const read: Variant = {
  name: "read",
  title: "a handler that reads one row by primary key and sends it",
  async open({ pool, handler }) {
    const body = JSON.stringify(await handler.insert(pool, INPUT));
    await pool.query("CREATE TABLE answer (id text PRIMARY KEY, body bytea NOT NULL)");
    await pool.query("INSERT INTO answer SELECT 'a' || n, $1 FROM generate_series(0, 9999) AS n", [Buffer.from(body)]);
    let n = 0;
    return {
      listener: listenerOf(async (_request, response) => {
        n = (n + 7_919) % 10_000;
        const text = "SELECT body FROM answer WHERE id = $1";
        const { rows } = await pool.query<{ body: Buffer }>({ name: "read_answer", text, values: [`a${n}`] });
        sendJson(response, 201, rows[0]?.body ?? "");
      }),
    };
  },
};
