import type { NewMessage } from "../core/message.ts";
import type { Session, Store } from "../core/store.ts";
import type { Emit } from "./emitter.ts";
import { traceOf } from "./observed-run.ts";

/**
 * The same store, telling of each message once the transaction that wrote it has committed. What is written in a
 * transaction of somebody else's is told when it is written: nobody here sees that one end.
 */
export function tellingMessages(store: Store<unknown>, emit: Emit): Store<unknown> {
  const tell = ({ id, tenant, topic, correlation }: NewMessage) =>
    emit({ kind: "message_sent", tenant, topic, messageId: id, trace: traceOf(correlation) });
  const telling =
    (transaction: Store["transaction"]): Store["transaction"] =>
    async (body) => {
      let sent: NewMessage[] = [];
      const value = await transaction((session) => {
        sent = [];
        return body(noting(session, sent));
      });
      for (const message of sent) tell(message);
      return value;
    };
  const within: Store["within"] = (tx) => {
    const { read, transaction } = store.within(tx);
    return { read, transaction: telling(transaction) };
  };
  const send: Store["send"] = async (tx, message) => {
    await store.send(tx, message);
    tell(message);
  };
  return Object.create(store, {
    transaction: { value: telling((body) => store.transaction(body)) },
    within: { value: within },
    send: { value: send },
  });
}

function noting(session: Session<unknown>, sent: NewMessage[]): Session<unknown> {
  const send: Session<unknown>["send"] = async (message) => {
    await session.send(message);
    sent.push(message);
  };
  return Object.create(session, { send: { value: send } });
}
