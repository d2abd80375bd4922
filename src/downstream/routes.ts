import { OncekeyError } from "../core/errors.ts";
import { type Publish, type Publisher, publisherOf } from "./publisher.ts";

/** A publisher, or only its function. */
export type Destination = Publisher | Publish;

/** Who delivers what. */
export interface Routes {
  /** As the store claims them. */
  readonly topics: readonly string[];
  /** The publisher of the most exact topic: the whole name, else the longest prefix. */
  publisherFor(topic: string): Publisher | undefined;
}

/** Raises `oncekey_config_invalid` for no topics, a malformed one, or a destination that cannot publish. */
export function routesOf(destinations: Readonly<Record<string, Destination>>): Routes {
  const routes = new Map<string, Publisher>();
  for (const [topic, destination] of Object.entries(destinations ?? {})) {
    if (!/^([^*]+\*?|\*)$/.test(topic)) {
      throw refused(`${JSON.stringify(topic)} is neither a topic's name nor a prefix that ends in one *`);
    }
    routes.set(topic, publisherAt(topic, destination));
  }
  if (routes.size === 0) throw refused("topics names none");
  // Longer prefixes first: the first that fits is the most exact one.
  const prefixes = [...routes.keys()].filter((topic) => topic.endsWith("*")).sort((a, b) => b.length - a.length);
  return {
    topics: [...routes.keys()],
    publisherFor(topic) {
      const known = routes.has(topic) ? topic : prefixes.find((prefix) => topic.startsWith(prefix.slice(0, -1)));
      return known === undefined ? undefined : routes.get(known);
    },
  };
}

function publisherAt(topic: string, destination: Destination): Publisher {
  if (typeof destination === "function") return publisherOf(`the function of ${topic}`, destination);
  if (typeof destination?.publish === "function" && typeof destination.name === "string") return destination;
  throw refused(`topic ${JSON.stringify(topic)} needs a publisher (name and publish) or a function`);
}

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `createRelay: ${why}. Nothing was started.`);
}
