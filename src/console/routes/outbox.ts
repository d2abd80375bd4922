import { messagePage, messageState } from "../../stores/postgres/operator/messages.ts";
import { cursorPlace, cursorText } from "../cursor.ts";
import { bodyOf, type Call, demandChange, look, reasonOf } from "../parts.ts";
import { badRequest, notFound, Refusal } from "../refusal.ts";
import { messageRow } from "./rows.ts";

const PAGE = 50;

/** `GET outbox`: dead letters by topic, or what is pending by when it is due. */
export async function getOutbox(call: Call) {
  const { query } = call.asked;
  const state = query.get("state") ?? "dead";
  if (state !== "dead" && state !== "pending") throw badRequest('"state" is "dead" or "pending"');
  const place = cursorPlace(query.get("cursor"), {
    after: state === "dead" ? /^[^\0]*$/ : /^-?\d{1,18}$/,
    seq: /^\d{1,19}$/,
  });
  const { messages, next } = await look(call, (ask) => messagePage(ask, state, call.tenant, place, PAGE));
  return { messages: messages.map(messageRow), next: cursorText(next) };
}

/** `POST outbox/<id>/resend`: due at once, with all its attempts before it. */
export function postResend(call: Call) {
  return change(
    call,
    "console_resend",
    "resent",
    "It is due now, with all its attempts before it: the next relay delivers it.",
  );
}

/** `POST outbox/<id>/discard`: gone for good. */
export function postDiscard(call: Call) {
  return change(
    call,
    "console_discard",
    "discarded",
    "It is gone and will never be delivered; what was sent behind it in its order goes on.",
  );
}

async function change(call: Call, statement: "console_resend" | "console_discard", kind: string, message: string) {
  demandChange(call);
  const reason = reasonOf(await bodyOf(call.asked));
  const { id, tenant, who } = call;
  return call.parts.database.change(async (ask) => {
    const [row] = await ask(statement, [id, tenant, who.operator.name, reason]);
    if (row?.changed === 1) return { kind, message };
    const state = await messageState(ask, id, tenant);
    if (state === null) throw notFound("message");
    const why = state === "delivered" ? "It was delivered" : "A relay delivers it at this moment";
    throw new Refusal(409, "console_refused", `${why}. Nothing was changed.`);
  });
}
