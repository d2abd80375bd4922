import type { NewEntry } from "../core/entry.ts";
import { entryReference } from "../core/reference.ts";
import type { Session } from "../core/store.ts";
import type { EngineContext } from "./context.ts";
import type { Step } from "./definition.ts";
import { entrySender, type Sender, sendFrom } from "./messages.ts";

/** What a transaction of an operation gets: `recoveryPoint` names the place, so that its messages keep their ids. */
export function stepOf(
  context: EngineContext,
  session: Session<unknown>,
  entry: NewEntry,
  recoveryPoint: string,
  sender: Sender = entrySender(context, entry),
): Step<unknown> {
  return {
    tx: session.tx,
    send: sendFrom(context, session, sender, recoveryPoint),
    reference: entryReference(entry),
  };
}
