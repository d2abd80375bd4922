/** The digits of a currency's minor unit (ISO 4217); 2 for what is none. */
function minorDigits(currency: unknown): number {
  if (typeof currency !== "string" || !/^[A-Za-z]{3}$/.test(currency)) return 2;
  return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/**
 * Decimal text (`"19.99"`) in the currency's minor unit, exactly; `null`, which the operation refuses, for everything else: a
 * JSON number may have lost digits already, and would be taken for minor units.
 */
export function minorOf(value: unknown, currency: unknown): bigint | null {
  const [, whole, fraction = ""] = /^(\d{1,28})(?:\.(\d+))?$/.exec(typeof value === "string" ? value : "") ?? [];
  const digits = minorDigits(currency);
  if (whole === undefined || /[^0]/.test(fraction.slice(digits))) return null;
  return BigInt(whole + fraction.slice(0, digits).padEnd(digits, "0"));
}

/** The other way round. */
export function decimalOf(minor: bigint, currency: unknown): string {
  const digits = minorDigits(currency);
  const text = minor.toString().padStart(digits + 1, "0");
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
