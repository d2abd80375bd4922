import type { Asked } from "./exchange.ts";
import { type ConsoleLimits, permitted } from "./operator.ts";
import { type ConsoleUser, userOf } from "./passwords.ts";
import { Refusal } from "./refusal.ts";
import { createSignInGate, type Sessions, type Who } from "./sessions.ts";

/** Signing in at the console itself. */
export interface SignIn {
  /** Raises 401 where the name or the password is wrong, 429 where it was tried too often. */
  enter(given: { readonly user: string; readonly password: string; readonly secure: boolean }): Promise<{
    readonly who: Who;
    readonly cookie: string;
  }>;
  /** Ends the session; gives the cookie that removes its cookie. */
  leave(asked: Asked): string;
}

/** Makes the sign-in of those users. */
export function createSignIn(users: readonly ConsoleUser[], sessions: Sessions, limits: ConsoleLimits): SignIn {
  const gate = createSignInGate();
  return {
    async enter({ user, password, secure }) {
      const left = gate.enter(user);
      let known: ConsoleUser | null = null;
      try {
        known = await userOf(users, user, password);
      } finally {
        left(known !== null);
      }
      if (known !== null) return sessions.open(permitted(known, limits), secure);
      const message = "No user has this name and password. Nothing was changed.";
      throw new Refusal(401, "console_sign_in_failed", message, { more: { signIn: true } });
    },
    leave: (asked) => sessions.end(asked),
  };
}
