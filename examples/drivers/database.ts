import { startEmbedded } from "../payments/embedded.ts";
import { openDataHome } from "../payments/embedded-home.ts";

/** The database that an example works on. */
export interface ExampleDatabase {
  readonly url: string;
  stop(): void;
}

/** The one of `DATABASE_URL`, or an embedded server of its own below `.data/drivers`. */
export async function exampleDatabase(): Promise<ExampleDatabase> {
  const url = process.env.DATABASE_URL;
  if (url !== undefined) return { url, stop: () => {} };
  const dir = process.env.ONCEKEY_DATA_DIR ?? ".data/drivers";
  return startEmbedded(openDataHome(dir, (line) => console.error(line)));
}
