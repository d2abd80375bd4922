import { ask } from "./request.ts";

/** Who works with the console. */
export interface Session {
  readonly operator: {
    readonly name: string;
    /** The only tenant that is shown; `null`: all. */
    readonly tenant: string | null;
    readonly readOnly: boolean;
    readonly mayReveal: boolean;
  };
  readonly csrf: string;
  /** `here`: with the console's own password; `outside`: the application knows who it is. */
  readonly signedIn: "here" | "outside";
  readonly endsAt: string | null;
  readonly version: string;
}

/** The session that there is. Raises `RequestError` with 401 where there is none. */
export const currentSession = () => ask<Session>("session", { quiet: true });

/** Opens one. Raises `RequestError`: 401 for a wrong pair, 429 after too many. */
export const signIn = (user: string, password: string) =>
  ask<Session>("session", { method: "POST", body: { user, password } });

/** Ends it. */
export const signOut = () => ask<void>("session", { method: "DELETE" });
