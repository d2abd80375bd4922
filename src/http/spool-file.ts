import { closeSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { namelessFile } from "../engine/held-bytes.ts";

const writeAt = promisify(write);

/** The file of a spool: bytes are added at its end, in the order of the calls. */
export interface SpoolFile {
  readonly fd: number;
  write(parts: readonly Uint8Array[]): Promise<void>;
  /** The same before it returns, whatever `write` is still busy with: each call's place in the file is its own. */
  writeNow(parts: readonly Uint8Array[]): void;
  close(): void;
}

/** Opens one. Raises the file system's errors, as its methods do. */
export function openSpoolFile(): SpoolFile {
  const fd = namelessFile();
  let length = 0;
  const reserve = (parts: readonly Uint8Array[]): number => {
    const at = length;
    for (const part of parts) length += part.length;
    return at;
  };
  return {
    fd,
    async write(parts) {
      let at = reserve(parts);
      for (const part of parts) {
        for (let done = 0; done < part.length; ) {
          done += (await writeAt(fd, part, done, part.length - done, at + done)).bytesWritten;
        }
        at += part.length;
      }
    },
    writeNow(parts) {
      let at = reserve(parts);
      for (const part of parts) {
        for (let done = 0; done < part.length; ) {
          done += writeSync(fd, part, done, part.length - done, at + done);
        }
        at += part.length;
      }
    },
    close: () => closeSync(fd),
  };
}
