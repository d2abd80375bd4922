/**
 * What stands in for `node:assert/strict` in a page: the functions that the submission storage suite uses. Each throws where
 * the real one throws; submission-tabs.test.ts holds them against it.
 */

const text = (value: unknown): string => JSON.stringify(value) ?? String(value);

function fail(message: string | undefined, why: string): never {
  throw new Error(message === undefined ? why : `${message} ${why}`);
}

/** Deep equality of plain JSON data, `undefined` included. */
function same(actual: unknown, expected: unknown): boolean {
  if (Object.is(actual, expected)) return true;
  if (typeof actual !== "object" || typeof expected !== "object" || actual === null || expected === null) return false;
  if (Array.isArray(actual) !== Array.isArray(expected)) return false;
  const [left, right] = [Object.entries(actual), new Map(Object.entries(expected))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && same(value, right.get(key)));
}

const assert = {
  ok(value: unknown, message?: string): void {
    if (!value) fail(message, `${text(value)} is not truthy`);
  },
  equal(actual: unknown, expected: unknown, message?: string): void {
    if (!Object.is(actual, expected)) fail(message, `${text(actual)} instead of ${text(expected)}`);
  },
  deepEqual(actual: unknown, expected: unknown, message?: string): void {
    if (!same(actual, expected)) fail(message, `${text(actual)} instead of ${text(expected)}`);
  },
  async rejects(promise: Promise<unknown>, expected?: RegExp): Promise<void> {
    const raised = await promise.then(
      () => null,
      (error: unknown) => ({ error }),
    );
    if (raised === null) fail(undefined, "It did not raise anything");
    if (expected !== undefined && !expected.test(String(raised.error))) fail(undefined, `It raised ${raised.error}`);
  },
};

/** Imported by modules that a page does not run; a bundle must find it all the same. */
export class AssertionError extends Error {}

// biome-ignore lint/style/noDefaultExport: the module that it stands in for has one.
export default assert;
