import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { elsewhere } from "../../lab/explore/worlds/elsewhere.ts";
import { guards } from "../../lab/explore/worlds/guards.ts";
import { worlds } from "../../lab/explore/worlds/index.ts";
import { repositoryRoot } from "../../scripts/check.ts";

const read = (file: string) => readFile(join(repositoryRoot, file), "utf8");
const numbered = (letter: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);

describe("the protocol's rows", () => {
  it("each has a world that breaks without its guard, or a test that shows it elsewhere", () => {
    const shown = [...guards, ...elsewhere].map(({ id }) => id);
    expect([...numbered("V", 24), ...numbered("Q", 6)].filter((id) => !shown.includes(id))).toEqual([]);
    expect(new Set(shown).size).toBe(shown.length);
  });

  it.each(guards)("$id: its world names it, and its guard is still in the source, once", async (guard) => {
    const world = worlds.find(({ name }) => name === guard.world);
    expect(world).toBeDefined();
    if (/^[VQ]\d+$/.test(guard.id)) expect(world?.covers).toContain(guard.id);
    expect((await read(guard.file)).split(guard.find)).toHaveLength(2);
    expect(guard.replace).not.toBe(guard.find);
  });

  it.each(elsewhere.flatMap(({ id, test }) => (test === null ? [] : [{ id, ...test }])))(
    "$id: the test that shows it is there",
    async ({ file, title }) => {
      expect(await read(file)).toContain(title);
    },
  );
});

describe("worlds", () => {
  it("have names of their own, say what they try, and can begin", () => {
    const names = worlds.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, about, actors, processes, invariants } of worlds) {
      expect(name).toMatch(/^[a-z][a-z0-9-]+$/);
      expect(about.length).toBeGreaterThan(20);
      expect(invariants.length).toBeGreaterThan(2);
      const used = actors.flatMap((actor) => (actor.kind === "client" ? actor.via : [actor.on]));
      expect(used.filter((process) => !(process in processes))).toEqual([]);
    }
  });
});
