import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { type BodyStore, newPointer } from "../core/body-store.ts";
import { defineSuite, type SuiteCase, type SuiteHarness } from "./suite.ts";

/** What a body store brings to its contract suite. */
export interface BodyStoreHarness extends SuiteHarness {
  readonly bodies: BodyStore;
  /** The same store, in a state in which it cannot be reached. */
  unreachable(): Promise<BodyStore>;
}

/** A case of the body store suite. */
type BodyStoreCase = SuiteCase<BodyStoreHarness>;

const newId = (): Uint8Array => new Uint8Array(randomBytes(32));
const pointerOf = (id = newId()): string => newPointer(id, randomBytes(16));

async function* inChunks(bytes: Uint8Array, size = 70_001): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const put = (bodies: BodyStore, pointer: string, bytes: Uint8Array) =>
  bodies.put(pointer, inChunks(bytes), bytes.length);

async function readAll(bodies: BodyStore, pointer: string): Promise<Uint8Array | null> {
  const found = await bodies.get(pointer);
  if (found === null) return null;
  const chunks: Uint8Array[] = [];
  for await (const chunk of found) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

const digest = (bytes: Uint8Array | null) =>
  bytes === null ? null : `${bytes.length} ${createHash("sha256").update(bytes).digest("hex")}`;

async function assertHolds(bodies: BodyStore, pointer: string, bytes: Uint8Array | null): Promise<void> {
  assert.equal(digest(await readAll(bodies, pointer)), digest(bytes));
}

const keeping: readonly BodyStoreCase[] = [
  {
    name: "gives back the bytes that were put: none, one, and more than any buffer holds",
    timeoutMs: 60_000,
    async run({ bodies }) {
      for (const length of [0, 1, 65_536, 5_000_003]) {
        const bytes = new Uint8Array(randomBytes(length));
        const pointer = pointerOf();
        await put(bodies, pointer, bytes);
        await assertHolds(bodies, pointer, bytes);
        await assertHolds(bodies, pointer, bytes);
      }
    },
  },
  {
    name: "has nothing under a pointer that was never put",
    async run({ bodies }) {
      const id = newId();
      await put(bodies, pointerOf(id), Uint8Array.of(1));
      await assertHolds(bodies, pointerOf(id), null);
      await assertHolds(bodies, pointerOf(), null);
    },
  },
  {
    name: "keeps several bodies of one entry apart, and puts beside each other",
    async run({ bodies }) {
      const id = newId();
      const all = Array.from({ length: 12 }, (_, index) => ({
        pointer: pointerOf(index % 2 === 0 ? id : newId()),
        bytes: new Uint8Array(randomBytes(100_000 + index)),
      }));
      await Promise.all(all.map(({ pointer, bytes }) => put(bodies, pointer, bytes)));
      await Promise.all(all.map(({ pointer, bytes }) => assertHolds(bodies, pointer, bytes)));
    },
  },
  {
    name: "reads a body only as fast as it is asked for, and lets go of one that is read in part",
    async run({ bodies }) {
      const pointer = pointerOf();
      const bytes = new Uint8Array(randomBytes(3_000_000));
      await put(bodies, pointer, bytes);
      for (let round = 0; round < 20; round++) {
        const found = await bodies.get(pointer);
        assert.ok(found);
        for await (const chunk of found) {
          assert.ok(chunk.length < bytes.length, "in chunks");
          assert.ok(Buffer.from(bytes.subarray(0, chunk.length)).equals(chunk));
          break;
        }
      }
      await assertHolds(bodies, pointer, bytes);
    },
  },
];

const removing: readonly BodyStoreCase[] = [
  {
    name: "has nothing any more where a body was removed, and its neighbours still",
    async run({ bodies }) {
      const id = newId();
      const [gone, kept] = [pointerOf(id), pointerOf(id)];
      for (const pointer of [gone, kept]) await put(bodies, pointer, Uint8Array.of(1, 2, 3));
      await bodies.remove(gone);
      await assertHolds(bodies, gone, null);
      await assertHolds(bodies, kept, Uint8Array.of(1, 2, 3));
    },
  },
  {
    name: "removes nothing where there is nothing, twice and at the same time",
    async run({ bodies }) {
      const pointer = pointerOf();
      await bodies.remove(pointer);
      await put(bodies, pointer, Uint8Array.of(1));
      await Promise.all([bodies.remove(pointer), bodies.remove(pointer)]);
      await bodies.remove(pointer);
      await assertHolds(bodies, pointer, null);
    },
  },
];

const failing: readonly BodyStoreCase[] = [
  {
    name: "raises what its source raises, and nothing can be read then",
    async run({ bodies }) {
      async function* breaking() {
        yield new Uint8Array(200_000);
        throw new Error("the source broke");
      }
      for (const length of [400_000, 8_000_000]) {
        const pointer = pointerOf();
        await assert.rejects(bodies.put(pointer, breaking(), length), /the source broke/);
        await assertHolds(bodies, pointer, null);
      }
    },
  },
  {
    name: "refuses a body that is shorter or longer than was said, and nothing can be read then",
    async run({ bodies }) {
      for (const length of [100_000, 3_000_000]) {
        for (const said of [length - 1, length + 1, 0, length * 3]) {
          const pointer = pointerOf();
          await assert.rejects(bodies.put(pointer, inChunks(new Uint8Array(length)), said), `${length}, ${said}`);
          await assertHolds(bodies, pointer, null);
        }
      }
    },
  },
  {
    name: "can be used after a put that failed",
    async run({ bodies }) {
      await assert.rejects(bodies.put(pointerOf(), inChunks(new Uint8Array(10)), 11));
      const pointer = pointerOf();
      await put(bodies, pointer, Uint8Array.of(1));
      await assertHolds(bodies, pointer, Uint8Array.of(1));
    },
  },
  {
    name: "raises where it cannot be reached: a body that cannot be seen is not a missing one",
    async run(harness) {
      const pointer = pointerOf();
      await put(harness.bodies, pointer, Uint8Array.of(1));
      const bodies = await harness.unreachable();
      await assert.rejects(bodies.get(pointer));
      await assert.rejects(bodies.get(pointerOf()));
      await assert.rejects(put(bodies, pointerOf(), Uint8Array.of(1)));
    },
  },
  {
    name: "refuses pointers that are none, whatever they would reach",
    async run({ bodies }) {
      const good = pointerOf();
      const bad = [
        ...["", "x", "../../etc/passwd", "/etc/passwd", `../${good}`, `${good}/..`, `${good}/../../x`, `${good}\0`],
        ...[good.toUpperCase(), good.replace("/", "\\"), good.replace("/", "//"), ` ${good}`, `${good}\n`],
      ];
      for (const pointer of bad.filter((one) => one !== good)) {
        await assert.rejects(bodies.get(pointer), { code: "oncekey_store_broken" }, JSON.stringify(pointer));
        await assert.rejects(put(bodies, pointer, Uint8Array.of(1)), { code: "oncekey_store_broken" });
        await assert.rejects(bodies.remove(pointer), { code: "oncekey_store_broken" });
      }
    },
  },
];

/**
 * The contract of a `BodyStore`: what is put is whole or absent, what is missing is told from what cannot be reached, and
 * nothing but a pointer is ever made a path or a key.
 */
export const bodyStoreSuite = defineSuite<BodyStoreHarness>("body store", [...keeping, ...removing, ...failing]);
