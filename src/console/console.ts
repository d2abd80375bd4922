import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { cipherOf, type EncryptionKey } from "../core/cipher.ts";
import type { OncekeyEvent } from "../engine/event.ts";
import type { Driver } from "../stores/postgres/driver-port.ts";
import { operatorDatabase } from "../stores/postgres/operator/reading.ts";
import { DEFAULT_SCHEMA } from "../stores/postgres/statements.ts";
import { postgresStore } from "../stores/postgres/store.ts";
import { answer, type Desk, refuseOptions } from "./answer.ts";
import { assetsFolder } from "./assets.ts";
import { type Asked, type ConsoleRequest, emptyAnswer } from "./exchange.ts";
import { webAsked, webResponse } from "./fetch.ts";
import { createLive } from "./live.ts";
import { type Next, nodeAsked, pathBelow, sendAnswer, targetOf } from "./node.ts";
import { type ConsoleLimits, type Operator, permitted } from "./operator.ts";
import type { ConsoleParts } from "./parts.ts";
import { type ConsoleUser, checkUsers } from "./passwords.ts";
import { createScraper } from "./scrape.ts";
import { createSeries } from "./series.ts";
import { createSessions, outsideWho, type SessionLimits, type Sessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { createTrail } from "./trail.ts";

/** Options of {@link createConsole}. */
export interface ConsoleOptions<Tx> {
  /** The database, as `postgresStore` takes it: a small pool of its own, or that of the service. */
  readonly driver: Driver<Tx>;
  /** Schema that the tables live in. Default `oncekey`. */
  readonly schema?: string;
  /** The ring of `encryptionKeys`, to open what is sealed when somebody looks at it, and to seal what is decided. Default: none. */
  readonly keys?: readonly EncryptionKey[];
  /** Your own authentication: who asks, or `null`. Either this or `passwords`. */
  readonly authorize?: (request: ConsoleRequest) => Operator | null | Promise<Operator | null>;
  /** People who sign in at the console itself. Sessions live in this process's memory. */
  readonly passwords?: readonly ConsoleUser[];
  /** Changes nothing, whoever asks. Default false. */
  readonly readOnly?: boolean;
  /** Whether masked content may be looked at, which is audited. Default true. */
  readonly reveal?: boolean;
  /** Where the console is mounted, as browsers see it. Default `/console`. */
  readonly basePath?: string;
  /** Scheme, host and port that browsers see, where a proxy changes `Host`: `https://ops.example.com`. Default: as `Host` says. */
  readonly origin?: string;
  /** How long sessions of `passwords` last, and how many each user may have. */
  readonly sessions?: SessionLimits;
  /** Signs the tokens of changes where `authorize` is used; give the same to every process. 16 bytes or more. Default: random. */
  readonly secret?: Uint8Array;
  /** A page of Prometheus metrics to fill the charts from, where the instance runs in another process. Default: `observe`. */
  readonly metrics?: string;
  /** A folder with the page's files. Default: the package's own. */
  readonly assets?: string;
  /** Told of failures that are no refusals. Default: standard error, one line without content. */
  readonly onError?: (error: unknown) => void;
}

/** A mounted console. */
export interface Console {
  /** An observer for `createOncekey({ observe })`: fills the charts, and the trail of the entries that this process saw. */
  readonly observe: (event: OncekeyEvent) => void;
  /** Answers what is below `basePath`; the rest goes to `next`, or is 404. For Express, Connect and `node:http`. */
  readonly node: (req: IncomingMessage, res: ServerResponse, next?: Next) => void;
  /** The same for hosts of the Fetch interface: Hono, Next, Bun, Deno. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends what is open. Closes no pool. */
  close(): void;
}

/**
 * A console over the tables of Oncekey, to be mounted in an application or run by `oncekey console`. Every look is a short
 * read-only transaction that an index serves. Raises `oncekey_config_invalid` for options that cannot be.
 */
export function createConsole<Tx>(options: ConsoleOptions<Tx>): Console {
  const basePath = checkedPath(options.basePath ?? "/console");
  const seen = observed(options.metrics);
  const parts = partsOf(options, seen);
  const sessions = options.passwords === undefined ? null : createSessions(basePath, options.sessions);
  const live = createLive(parts, { perSession: 4, atAll: 100 }, ({ session }) => sessions?.isOver(session) === true);
  const desk = deskOf(options, { parts, live, sessions });
  return {
    observe: seen.observe,
    node(req, res, next) {
      const place = pathBelow(targetOf(req), basePath);
      if (place === null) return next === undefined ? void res.writeHead(404).end() : next();
      if (place.path === "") return void res.writeHead(308, { location: `${basePath}/` }).end();
      const asked = nodeAsked(req, res, place);
      void answer(desk, asked).then((answered) => sendAnswer(req, res, asked, answered));
    },
    async fetch(request) {
      const gone = new AbortController();
      request.signal.addEventListener("abort", () => gone.abort(), { once: true });
      const { pathname, search } = new URL(request.url);
      const place = pathBelow(pathname + search, basePath);
      if (place === null) return webResponse(request.method, emptyAnswer(404), gone);
      if (place.path === "") return webResponse(request.method, emptyAnswer(308, [["location", `${basePath}/`]]), gone);
      return webResponse(request.method, await answer(desk, webAsked(request, place, gone.signal)), gone);
    },
    close() {
      live.close();
      seen.scraper?.stop();
    },
  };
}

function observed(metrics: string | undefined) {
  if (metrics !== undefined && !/^https?:$/.test(URL.canParse(metrics) ? new URL(metrics).protocol : "")) {
    refuseOptions("metrics is an http or https URL");
  }
  const series = createSeries();
  const trail = createTrail();
  const scraper = metrics === undefined ? null : createScraper(metrics, series);
  scraper?.start();
  let isObserving = false;
  return {
    series,
    trail,
    scraper,
    source(): "process" | "metrics" | "none" {
      if (isObserving) return "process";
      return scraper === null ? "none" : "metrics";
    },
    observe(event: OncekeyEvent) {
      isObserving = true;
      series.note(event);
      trail.note(event);
    },
  };
}

function partsOf<Tx>(
  options: ConsoleOptions<Tx>,
  { series, trail, source }: ReturnType<typeof observed>,
): ConsoleParts {
  const { schema = DEFAULT_SCHEMA, readOnly = false, reveal = true } = options;
  const driver = options.driver as Driver<unknown>;
  return {
    driver,
    database: operatorDatabase(driver, schema),
    store: postgresStore(driver, { schema, groups: false }),
    cipher: cipherOf(options.keys ?? []),
    limits: { readOnly, reveal },
    series,
    trail,
    source,
  };
}

function deskOf<Tx>(
  options: ConsoleOptions<Tx>,
  { parts, live, sessions }: Pick<Desk, "parts" | "live"> & { readonly sessions: Sessions | null },
): Desk {
  const { authorize, passwords, origin = null, assets = assetsFolder() } = options;
  if ((authorize === undefined) === (passwords === undefined)) refuseOptions("give either authorize or passwords");
  if (origin !== null && (!URL.canParse(origin) || new URL(origin).origin !== origin))
    refuseOptions("origin is scheme, host and port");
  const secret = options.secret ?? randomBytes(32);
  if (secret.length < 16) refuseOptions("secret is 16 bytes or more");
  const shared = { parts, live, assets, origin, onError: options.onError ?? tellError };
  if (passwords !== undefined && sessions !== null) {
    checkUsers(passwords);
    for (const user of passwords) permitted(user, parts.limits);
    const signIn = createSignIn(passwords, sessions, parts.limits);
    return { ...shared, signIn, who: async (asked, active) => sessions.of(asked, active) };
  }
  return { ...shared, signIn: null, who: (asked) => outside(authorize, asked, parts.limits, secret) };
}

async function outside(
  authorize: ConsoleOptions<unknown>["authorize"],
  asked: Asked,
  limits: ConsoleLimits,
  secret: Uint8Array,
) {
  const { method, path, native, header } = asked;
  const operator = (await authorize?.({ method, path, native, header })) ?? null;
  return operator === null ? null : outsideWho(permitted(operator, limits), secret);
}

function checkedPath(path: string): string {
  if (/^(?:\/(?!\.+(?:\/|$))[A-Za-z0-9._~-]+)+$/.test(path)) return path;
  return refuseOptions('basePath begins with a slash, ends without one and holds plain names, such as "/console"');
}

/** An error's message may hold what must not be told. */
function tellError(error: unknown): void {
  const name = error instanceof Error && /^[\w$.]{1,64}$/.test(error.name) ? error.name : "Error";
  process.stderr.write(`oncekey console: a request failed (${name}); give createConsole an onError to see it.\n`);
}
