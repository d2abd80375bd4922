/** Deepest nesting of a value that is written or walked. Far above what a request may hold, far below the stack's end. */
export const MAX_VALUE_DEPTH = 1000;

/** Where a walk through a value is: the names on the way down, and the objects it is inside of (to see cycles). */
export interface Trail {
  readonly names: (string | number)[];
  readonly ancestors: Set<object>;
}

/** A trail at the top of a value. */
export function newTrail(): Trail {
  return { names: [], ancestors: new Set() };
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/;

/**
 * The trail as text for an error message: `$.items[2].price`. A member name that does not look like a field of an API is
 * data of the client (an address as a map's key, say), which messages never contain: it is shown as `[?]`.
 */
export function pathOf(names: readonly (string | number)[]): string {
  const steps = names.map((name) => {
    if (typeof name === "number") return `[${name}]`;
    return PLAIN_NAME.test(name) ? `.${name}` : "[?]";
  });
  return `$${steps.join("")}`;
}

/** Defines an own data property. Plain assignment would call the `__proto__` setter and change the object's prototype. */
export function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[name] = value;
  }
}
