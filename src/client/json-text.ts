import { hex } from "./bytes.ts";
import { refuse } from "./error.ts";

/** What `JSON.stringify` would silently empty or spell out: a forgotten `await` must not become an order for nothing. */
const EMPTIED = /(Map|Set|Promise|Buffer|File|\dArray|Data|Params|Blob|Error|Iterator|Generator)\]$/;

/**
 * JSON text of a value, as `JSON.stringify` writes it, but a bigint with its exact digits. Raises
 * `oncekey_submission_invalid` for what would be lost: NaN and infinity, invalid dates, Map, Set, promises, raw bytes, a
 * cycle, no value at all.
 */
export function jsonText(value: unknown): string {
  // Digits travel through JSON.stringify as marked strings; nobody else's text holds a mark of 128 random bits.
  const mark = hex(crypto.getRandomValues(new Uint8Array(16)));
  try {
    // `this[key]` is the value before `toJSON` (of Date, or one patched onto BigInt) was applied to it.
    const text = JSON.stringify(value, function (this: Record<string, unknown>, key, prepared: unknown) {
      const given = this[key];
      if (typeof given === "bigint") return mark + given;
      // NaN, infinity and invalid dates are written as null.
      const isNull =
        prepared === null ? given instanceof Date : typeof prepared === "number" && !Number.isFinite(prepared);
      return isNull || EMPTIED.test(Object.prototype.toString.call(prepared))
        ? refuse("The json cannot be used")
        : prepared;
    });
    return text.replace(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1");
  } catch (error) {
    return refuse("The json cannot be used", error);
  }
}
