import { awaited, type FaultKind } from "../fault.ts";
import type { Member } from "../member.ts";
import type { World } from "../world.ts";
import { underWay } from "./processes.ts";

/** One after the other, under traffic: old and new code run beside each other until the last one is replaced. */
async function rollOut(world: World): Promise<number> {
  let met = 0;
  for (const api of world.crew.of("api")) {
    met += await replaced(api, () => underWay(world, api));
  }
  // Workers have no traffic of their own to keep up.
  const others = [...world.crew.of("worker"), ...world.crew.of("relay")];
  await Promise.all(others.map((one) => replaced(one, () => 0)));
  return met;
}

function replaced(member: Member, look: () => number): Promise<number> {
  return member.exclusively(async () => {
    await awaited(() => look() > 0, 1_000);
    const met = look();
    await member.stop();
    await member.start();
    return met;
  });
}

/** A release with a newer fingerprint secret and a newer version of every operation. */
export const redeploy: FaultKind = {
  name: "redeploy",
  lane: "processes",
  async strike(world) {
    world.deploy.upgrade();
    const met = await rollOut(world);
    return { did: `rolled out a newer fingerprint secret and operation version; ${met} requests under way`, met };
  },
};

const ROTATE_TRIES = 20;

/** The next encryption key seals, everywhere; then what lies there is sealed anew, beside the traffic. */
export const rotateKeys: FaultKind = {
  name: "rotate_keys",
  lane: "processes",
  async strike(world) {
    world.deploy.rotateKeys();
    const met = await rollOut(world);
    let code = "";
    let runs = 0;
    // 5: rows that somebody held were left; 1: another fault has the database.
    for (; code !== "0" && runs < ROTATE_TRIES; runs++) {
      await awaited(() => world.database.pool.query("SELECT 1").then(Boolean, () => false), 10_000);
      code = (await world.command(["rotate", "--json"])).code;
    }
    const did = `rolled out the next encryption key, ${met} requests under way; oncekey rotate ended ${code} in run ${runs}`;
    return { did, met: code === "0" ? met : 0 };
  },
};
