import type { Random } from "../../support/random.ts";
import { awaited, type FaultKind, forMs } from "../fault.ts";
import type { Member, Role } from "../member.ts";
import { TIMES } from "../terms.ts";
import type { World } from "../world.ts";

const TRAFFIC_LIMIT_MS = 5_000;

/** What is under way at a process of that kind. */
export function underWay({ network, sink }: World, { role, port }: Pick<Member, "role" | "port">): number {
  const { front, database, psp } = network;
  switch (role) {
    case "api":
      return front.inFlight(port);
    case "clients":
      return front.inFlight();
    case "psp":
      return psp.inFlight();
    case "worker":
      return database.worker.inFlight();
    case "relay":
      return sink.open();
  }
}

/** A process of that kind which no other fault has at the moment. */
export function chosen({ crew }: World, role: Role, random: Random): Member {
  const all = random.shuffled(crew.of(role));
  const member = all.find((one) => !one.isBusy()) ?? all[0];
  if (member === undefined) throw new Error(`There is no ${role}.`);
  return member;
}

/** SIGKILL in the middle of its work; it is down for a while, then started again. */
export function kill(role: Role): FaultKind {
  return {
    name: `kill_${role}`,
    lane: "processes",
    async strike(world, random) {
      const member = chosen(world, role, random);
      const downMs = random.between(0, 800);
      return member.exclusively(async () => {
        await awaited(() => underWay(world, member) > 0, TRAFFIC_LIMIT_MS);
        const met = underWay(world, member);
        await member.kill();
        await forMs(downMs);
        await member.start();
        return { did: `SIGKILL to ${member.name}, ${met} under way; down for ${downMs} ms`, met };
      });
    },
  };
}

/** SIGSTOP in the middle of its work until its leases have lapsed, then SIGCONT: a zombie that goes on. */
export function freeze(role: Role): FaultKind {
  return {
    name: `freeze_${role}`,
    lane: "database",
    async strike(world, random) {
      const member = chosen(world, role, random);
      const ms = TIMES.leaseMs + random.between(300, 2_500);
      return member.exclusively(async () => {
        await awaited(() => member.isUp() && underWay(world, member) > 0, TRAFFIC_LIMIT_MS);
        const met = underWay(world, member);
        await member.freeze(ms);
        return { did: `SIGSTOP to ${member.name}, ${met} under way; SIGCONT after ${ms} ms`, met };
      });
    },
  };
}
