import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { extname, join } from "node:path";
import { type Console, createConsole, hashPassword } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import { publishFirst, readJson } from "./ownership.ts";
import { describeError } from "./problem.ts";
import type { Settings } from "./settings.ts";

/** The operators' console of the example, for its API to mount. */
export interface OpenConsole extends Pick<Console, "observe" | "node"> {
  /** Where user and password stand. */
  readonly passwordFile: string;
  /** Ends what pages listen to: it would never end by itself. */
  endStreams(): void;
  /** Closes its connections. */
  close(): Promise<void>;
}

interface Credentials {
  readonly user: string;
  readonly password: string;
}

const POOL_SIZE = 3;
const CHECKOUT = join(import.meta.dirname, "..", "..");

/**
 * Opens the console over the example's database: with connections of its own, so that no look takes one from a payment. Its
 * only user sees all tenants. A real service gives `authorize` its own sign-in instead.
 */
export async function openConsole(settings: Settings, databaseUrl: string): Promise<OpenConsole> {
  const passwordFile = join(settings.dataDir, "console-password.json");
  const { user, password } = credentialsIn(settings.dataDir, passwordFile);
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE, connectionTimeoutMillis: 5_000 });
  pool.on("error", (error) => console.error(`database connection of the console lost: ${describeError(error)}`));
  pool.on("connect", (client) => void client.on("error", () => undefined));
  const { observe, node, close } = createConsole({
    driver: fromPg(pool),
    keys: settings.encryptionKeys,
    passwords: [{ name: user, passwordHash: await hashPassword(password), tenant: null }],
    onError: (error) => console.error(`console: ${describeError(error)}`),
  });
  return {
    observe,
    node,
    passwordFile,
    endStreams: close,
    async close() {
      close();
      await pool.end();
    },
  };
}

/** Made at the first start, and kept in a file of mode 0600: several APIs on one directory take the same password. */
function credentialsIn(dataDir: string, file: string): Credentials {
  mkdirSync(dataDir, { recursive: true });
  const known = readJson<Credentials>(file);
  if (known !== null) return known;
  const fresh = { user: "operator", password: randomBytes(18).toString("base64url") };
  // Another process may have been faster: there is one password, the file's.
  return publishFirst(file, fresh) ? fresh : (readJson<Credentials>(file) ?? fresh);
}

/**
 * In a checkout, builds the console's page where it is missing or older than its sources. What fails is told and stops
 * nothing: the API works without a page.
 */
export async function preparePage(): Promise<void> {
  // A bundle has the page beside it.
  if (extname(import.meta.url) !== ".ts") return;
  const script = join(CHECKOUT, "scripts", "build-console.ts");
  const child = spawn(process.execPath, ["--import", "tsx", script, "--if-needed"], {
    cwd: CHECKOUT,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once("error", () => resolve(null));
    child.once("exit", resolve);
  });
  if (code !== 0)
    console.error("The console's page could not be built; the API runs without it. Try npm run build:console.");
}
