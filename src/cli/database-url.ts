import { type CommandLine, UsageError } from "./command-line.ts";

const EXAMPLE = "postgres://user:password@host:5432/database";

/**
 * The URL of the database: `--database`, else `DATABASE_URL`. Raises {@link UsageError} where there is none, or it is no
 * PostgreSQL URL; the message never repeats it.
 */
export function databaseUrl({ values }: CommandLine, environment: NodeJS.ProcessEnv): string {
  const url = values.get("database") ?? environment.DATABASE_URL;
  const source = values.has("database") ? "--database" : "DATABASE_URL";
  if (!url) {
    throw new UsageError(`No database is named. Set DATABASE_URL (or give --database) to ${EXAMPLE}.`);
  }
  const protocol = parsed(url)?.protocol;
  if (protocol === "postgres:" || protocol === "postgresql:") return url;
  throw new UsageError(
    `${source} is not a PostgreSQL URL. Write ${EXAMPLE}, with special characters in user and password percent-encoded.`,
  );
}

/**
 * What no output may hold: the URLs, and the passwords in them as written and as meant. Whatever looks like a URL
 * counts, because it may have been given in the wrong place.
 */
export function secretsOf(args: readonly string[], environment: NodeJS.ProcessEnv): readonly string[] {
  const { DATABASE_URL, PGPASSWORD } = environment;
  const given = args.map((arg) => arg.replace(/^--?[a-z-]+=/i, "")).filter((arg) => arg.includes("://"));
  const urls = [...given, ...(DATABASE_URL ? [DATABASE_URL] : [])];
  const found = [...urls.flatMap((url) => [url, ...passwordsIn(url)]), PGPASSWORD ?? ""];
  return [...new Set(found)].filter((secret) => secret !== "");
}

function passwordsIn(url: string): string[] {
  const { password, searchParams } = parsed(url) ?? {};
  // In a URL that does not parse, what stands before the last @ may be the password.
  const written = password ?? passwordWritten(url);
  const inQuery = ["password", "sslpassword"].flatMap((name) => searchParams?.getAll(name) ?? []);
  return [written, decoded(written), ...inQuery];
}

// Searched for, not matched: an expression would begin anew at each "://", in quadratic time.
function passwordWritten(url: string): string {
  const colon = url.indexOf(":", url.indexOf("://") + 3);
  const end = url.lastIndexOf("@");
  return url.includes("://") && colon !== -1 && end > colon ? url.slice(colon + 1, end) : "";
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The clients accept a socket directory in the query and no host before it, which `URL` alone refuses. */
function parsed(url: string): URL | null {
  const hosted = url.replace("@/", "@localhost/");
  return URL.canParse(hosted) ? new URL(hosted) : null;
}
