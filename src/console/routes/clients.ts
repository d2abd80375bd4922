import { offered } from "../../stores/postgres/operator/indexes.ts";
import { suspectClients } from "../../stores/postgres/operator/suspects.ts";
import { type Call, look } from "../parts.ts";

const ADVICE = {
  key_per_attempt:
    "It looks as if this client mints a key for each attempt: then no retry of its is ever recognised, and each one runs. It should keep one key for each action of the user until its result is known.",
  key_from_payload:
    "It looks as if keys are made from the payload: whoever wants the same thing a second time is given the first one's answer, and nothing happens. It should take a random key for each action of the user.",
  mismatches:
    "Known keys came with another payload and were refused (422). Look for keys that outlive their action: kept in a form, in a component, or over a changed cart.",
} as const;

/** `GET clients`: who seems to make keys wrongly, in a bounded sample; and mismatches that this process saw. */
export async function getClients(call: Call) {
  const { tenant, parts } = call;
  const { suspects, sampled } = await look(call, async (ask) => suspectClients(ask, await offered(ask), tenant));
  const mismatches = parts.trail
    .mismatches(tenant)
    .map((group) => ({ kind: "mismatches" as const, client: null, ...group }));
  const findings = [...suspects, ...mismatches].map((finding) => ({ ...finding, advice: ADVICE[finding.kind] }));
  return { findings, sampled };
}
