/** The console's answer was no, or there was none. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** 0: there was no answer. */
  readonly status: number;
  readonly code: string;
  /** Whether one can sign in at the console itself. */
  readonly signIn: boolean;

  constructor(status: number, code: string, message: string, signIn = true) {
    super(message);
    this.status = status;
    this.code = code;
    this.signIn = signIn;
  }
}

/** How a request is sent. */
export interface Asking {
  readonly method?: "GET" | "POST" | "DELETE";
  /** Sent as JSON. */
  readonly body?: unknown;
  /** In its place: JSON that is text already. */
  readonly bodyText?: string;
  readonly signal?: AbortSignal;
  /** Nobody asked for it by hand: it must not keep a session from ending. */
  readonly quiet?: boolean;
}

let csrf = "";
let onSignedOut: () => void = () => undefined;

/** Keeps the token that changes carry, and who is told when the session is over. */
export function keepToken(token: string, signedOut: () => void): void {
  csrf = token;
  onSignedOut = signedOut;
}

/** Asks the console, below its own path. Raises {@link RequestError}; a request that was taken back raises `AbortError`. */
export async function ask<Answer>(
  path: string,
  { method = "GET", signal, quiet = false, ...rest }: Asking = {},
): Promise<Answer> {
  const body = rest.bodyText ?? (rest.body === undefined ? undefined : JSON.stringify(rest.body));
  const response = await fetch(`api/${path}`, {
    method,
    credentials: "same-origin",
    cache: "no-store",
    headers: {
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(method !== "GET" && { "X-Oncekey-Csrf": csrf }),
      ...(quiet && { "X-Oncekey-Quiet": "1" }),
    },
    ...(body !== undefined && { body }),
    ...(signal !== undefined && { signal }),
  }).catch(refuseUnanswered);
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as Answer;
  if (response.status === 401 && path !== "session") onSignedOut();
  throw await refusalIn(response);
}

function refuseUnanswered(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  throw new RequestError(0, "no_answer", "The console does not answer. It is asked again while this page is open.");
}

async function refusalIn(response: Response): Promise<RequestError> {
  const told = (await response.json().catch(() => null)) as Told | null;
  const { code = "unknown", message = `The console answered ${response.status}.` } = told?.error ?? {};
  return new RequestError(response.status, code, message, told?.signIn !== false);
}

interface Told {
  readonly error?: { readonly code?: string; readonly message?: string };
  readonly signIn?: boolean;
}

/** A path with what is asked of it; what is empty is left out. */
export function pathWith(path: string, query: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}
