import type { Lane } from "./fault.ts";
import type { World } from "./world.ts";

/** What is known while the campaign runs. */
export interface Progress {
  /** One line: time, traffic, who is up, what is being done. */
  line(): string;
  /** Seconds since the beginning. */
  time(): string;
  onFault(lane: Lane, name: string | null): void;
}

/** Looks at the world whenever it is asked. */
export function progressOf({ crew, network, sink }: World): Progress {
  const startedAtMs = performance.now();
  const striking = new Map<Lane, string>();
  let faults = 0;
  const time = () => `${((performance.now() - startedAtMs) / 1_000).toFixed(1).padStart(6)} s`;
  return {
    time,
    line() {
      const up = crew.members.filter((one) => one.isUp()).length;
      const parts = [
        `${network.front.inFlight()} requests under way`,
        `${sink.delivered.length} messages delivered`,
        `${up} of ${crew.members.length} processes up`,
        `${faults} faults`,
        [...striking.values()].join(", "),
      ];
      return `${time()}  ${parts.filter((part) => part !== "").join(" · ")}`;
    },
    onFault(lane, name) {
      if (name === null) striking.delete(lane);
      else {
        striking.set(lane, name);
        faults++;
      }
    },
  };
}
