import { badRequest } from "./refusal.ts";

/** A place in a list as text that only the console reads: a flat object of texts. */
export function cursorText(place: Readonly<Record<string, string>> | object | null): string | null {
  return place === null ? null : Buffer.from(JSON.stringify(place)).toString("base64url");
}

/** The reverse; every member must be there and fit its pattern. Raises {@link badRequest}. */
export function cursorPlace<Member extends string>(
  given: string | null,
  members: Readonly<Record<Member, RegExp>>,
): Readonly<Record<Member, string>> | null {
  if (given === null || given === "") return null;
  const parsed = parsedObject(given);
  const place: Partial<Record<Member, string>> = {};
  for (const [name, pattern] of Object.entries(members) as [Member, RegExp][]) {
    const value = parsed[name];
    if (typeof value !== "string" || value.length > 1_024 || !pattern.test(value))
      throw badRequest("The cursor is not one of this list's");
    place[name] = value;
  }
  return place as Record<Member, string>;
}

function parsedObject(given: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(given, "base64url").toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
