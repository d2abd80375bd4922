import { createHash } from "node:crypto";

/** The sizes of body that everything is measured at, in bytes: a little one to the largest that is taken by default. */
export const SIZES: readonly number[] = [200, 1_024, 8_192, 65_536, 1_048_576];

/** How a client wrote its JSON: as `JSON.stringify` does, or with the blanks of `json.dumps` and of people. */
export type Spelling = "compact" | "spaced";

/**
 * A JSON body of an order, as close under so many bytes as its lines allow: members out of order, nested objects, whole and
 * broken numbers, an escape, text beyond ASCII.
 */
export function jsonBody(bytes: number, spelling: Spelling = "compact"): Uint8Array {
  const write = (lines: readonly unknown[], note: string) => {
    const text = JSON.stringify({
      currency: "EUR",
      amount_minor: 125_099,
      customer: { id: "cus_9s6XKzkNRiz8i3", note },
      lines,
    });
    return Buffer.from(spelling === "compact" ? text : text.replaceAll(/([,:])(?=["[{\d])/g, "$1 "));
  };
  const lines: unknown[] = [];
  for (let length = write(lines, "").length; length < bytes; length = write(lines, "").length) {
    const count = Math.max(1, Math.floor((bytes - length) / 140));
    for (let added = 0; added < count; added++) lines.push(line(lines.length));
  }
  while (lines.length > 0 && write(lines, "").length > bytes) lines.pop();
  const body = write(lines, "n".repeat(Math.max(0, bytes - write(lines, "").length)));
  return body;
}

function line(index: number): unknown {
  return {
    sku: `SKU-${1_000 + index}`,
    quantity: (index % 7) + 1,
    price: Math.round(1_999 + index * 100) / 100,
    gift: index % 2 === 0,
    text: `Größe "${index}"`,
  };
}

/** The yardstick of whatever has to read a body: `JSON.parse` of it, and one SHA-256 over it. */
export function parseAndHash(body: Uint8Array): () => unknown {
  const text = Buffer.from(body).toString();
  return () => [JSON.parse(text), createHash("sha256").update(body).digest()];
}
