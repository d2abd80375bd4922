import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./data/session.ts";

/** Whose session the page runs in. */
export const SessionContext = createContext<Session | null>(null);

/** Who works with the page, and what that person may do. Only below a page that somebody is signed in to. */
export function useOperator(): Session["operator"] {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("There is no session here.");
  return session.operator;
}
