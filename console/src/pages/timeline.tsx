import type { Item } from "../data/entries.ts";
import { When } from "../parts/facts.tsx";

/** What happened, oldest first. */
export function Timeline({ items }: { readonly items: readonly Item[] }) {
  return (
    <ol class="timeline">
      {items.map((item, place) => (
        <li key={`${place} ${item.kind}`} class={item.weight} data-kind={item.kind}>
          <p class="what">
            <strong>{item.title}</strong>
            {item.attempt === null ? null : <span class="quiet"> attempt {item.attempt}</span>}
          </p>
          {item.detail === null ? null : <p>{item.detail}</p>}
          {item.derivedKey ? (
            <p>
              under the key <span class="mono">{item.derivedKey}</span>
            </p>
          ) : null}
          <p class="quiet">
            <When at={item.at} none="not recorded when" />
            {item.from === "process" ? " · seen by this process, and forgotten with it" : ""}
          </p>
        </li>
      ))}
    </ol>
  );
}
