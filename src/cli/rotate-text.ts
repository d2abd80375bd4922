import type { RotateResult, UnreadableValue } from "../stores/postgres/index.ts";
import { alarming, aligned, counted, grouped, visible } from "./layout.ts";

/** What a rotation did and left, for people. */
export function rotateText(result: RotateResult, sealPlain: boolean): string {
  const { kind, newestKeyId, resealed } = result;
  const did =
    kind === "planned"
      ? "Nothing was changed (dry run)."
      : `${counted(resealed, "value was", "values were")} sealed anew under key ${newestKeyId}.`;
  return [`${did}\n`, countsText(result), unreadableText(result.unreadable), `\n${leftText(result, sealPlain)}\n`].join(
    "",
  );
}

function countsText({ values }: RotateResult): string {
  if (values.length === 0) return "\nNothing that can be sealed is stored.\n";
  const rows = values.map(
    ({ part, keyId, count }) => [`${part}, ${keyId === null ? "plain" : `key ${keyId}`}`, grouped(count)] as const,
  );
  return `\nstored values by kind and key\n${aligned(rows, "  ")}`;
}

function unreadableText(unreadable: readonly UnreadableValue[]): string {
  if (unreadable.length === 0) return "";
  const rows = unreadable.map(({ part, id, why }) => {
    const meaning = why === "key_missing" ? "its key is not in the ring" : "changed, or of another row or key";
    return [visible(id), `${part}: ${meaning}`] as const;
  });
  return `\ncannot be opened${rows.length < 10 ? "" : " (the first of them)"}\n${aligned(rows, "  ")}`;
}

function leftText({ newestKeyId, underOtherKeys, plain }: RotateResult, sealPlain: boolean): string {
  const stored = plain === 0 ? "" : ` ${counted(plain, "value is", "values are")} stored plainly`;
  const advice = sealPlain || plain === 0 ? "" : " (--seal-plain seals them)";
  const plainly = stored === "" ? "" : `${stored}${advice}.`;
  if (underOtherKeys === 0) {
    return `No value is left under another key than ${newestKeyId}: every other key can be taken out of the ring.${plainly}`;
  }
  const left = alarming(`${counted(underOtherKeys, "value is", "values are")} under other keys than ${newestKeyId}.`);
  return `${left} Keep these keys. Values that were in use are met by the next run.${plainly}`;
}
