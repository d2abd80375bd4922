import fc from "fast-check";
import { type Cipher, cipherOf, openPayload, ownerOf, payloadSealedUnder, sealPayload } from "../../src/core/cipher.ts";
import { must, mustEqual, outcomeOf } from "./finding.ts";
import { bytesOfAll, type FuzzTarget, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["oncekey_store_broken", "oncekey_config_invalid"];
const KEYS = [1, 0x31, 0x81].map((id) => ({ id, key: new Uint8Array(32).fill(id) }));
const cipher: Cipher = cipherOf(KEYS);
const owner = { id: "message-1", tenant: "acme" };
const place = ownerOf(owner.id, owner.tenant);
/** First byte of what is sealed. */
const SEALED = 0x81;

/**
 * Sealed values and payloads. The first four bytes of an input say how it is damaged, the others are what is sealed: position
 * (two bytes), flipped bits (none: it stays), bytes cut off.
 */
export const sealedTarget: FuzzTarget = {
  name: "sealed",
  about: "sealed values and payloads: any changed or missing byte is refused",
  seeds: bytesOfAll(["\0\0\0\0plain", "\0\u0003\u0001\0plain", "\0\0\u0080\0plain", "\0\0\0\u0001", "\0\0\0\u0020a"]),
  words: ["\u0000", "\u0001", "\u007f", '{"a":1}', "sealed:"],
  run: (input) => openPayload(cipher, owner, `sealed:${Buffer.from(input).toString("base64url")}`),
  try: trySealed,
  properties: [
    propertyOf(
      "bytes that nobody sealed never open as if they were sealed",
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const sealed = Uint8Array.of(SEALED, ...bytes);
        must(outcomeOf(REFUSES, () => cipher.open(place, "record", sealed)).kind === "refused", "it opened");
        const text = `sealed:${Buffer.from(sealed).toString("base64url")}`;
        must(outcomeOf(REFUSES, () => openPayload(cipher, owner, text)).kind === "refused", "a payload opened");
      }),
    ),
    propertyOf(
      "a payload's text with any characters changed is refused, or still says the same",
      fc.property(fc.json(), fc.nat(), fc.string({ unit: "binary-ascii", maxLength: 2 }), (json, at, put) => {
        const stored = sealPayload(cipher, owner, json);
        const from = 7 + (at % (stored.length - 7));
        const changed = stored.slice(0, from) + put + stored.slice(from + 1);
        const opened = outcomeOf(REFUSES, () => openPayload(cipher, owner, changed));
        if (opened.kind === "value") mustEqual(opened.value, json, "the payload");
        payloadSealedUnder(changed);
      }),
    ),
  ],
  families: [repeated("sealed bytes", "\u0081\u0001", "a"), repeated("a payload", "\u0081\u0001", "\u00ff")],
};

function trySealed(input: Uint8Array): Verdict {
  const [high = 0, low = 0, flip = 0, cut = 0, ...rest] = input;
  const plain = Uint8Array.from(rest);
  const sealed = cipher.seal(place, "record", plain);
  const changed = sealed.slice(0, Math.max(0, sealed.length - cut));
  const at = ((high << 8) | low) % Math.max(1, changed.length);
  if (changed.length > 0) changed[at] = (changed[at] ?? 0) ^ flip;
  const isChanged = flip !== 0 || cut !== 0;
  const outcome = outcomeOf(REFUSES, () => cipher.open(place, "record", changed));
  if (!isChanged) {
    must(outcome.kind === "value", "what was sealed does not open");
    mustEqual(Buffer.from(outcome.value), Buffer.from(plain), "the value");
    return "accepted";
  }
  // Without the first byte nothing says that it is sealed: it is as it was before there were keys, and its own reader refuses it.
  if (changed[0] === SEALED) must(outcome.kind === "refused", "what was changed opens");
  return "refused";
}
