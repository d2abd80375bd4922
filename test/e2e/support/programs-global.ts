import { openDesk } from "../../support/desk.ts";
import { bundleExample, removePrograms } from "./example-programs.ts";

/** Vitest's `globalSetup`: the example's programs are bundled once a run, and only when a test file asks for them. */
export async function setup(): Promise<() => Promise<void>> {
  let made: Promise<string> | undefined;
  const desk = await openDesk(() => {
    made ??= bundleExample();
    return made;
  });
  process.env.ONCEKEY_TEST_PROGRAMS = String(desk.port);
  return async () => {
    desk.close();
    await made?.then(removePrograms, () => {});
  };
}
