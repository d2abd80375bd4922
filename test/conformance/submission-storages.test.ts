import { memoryStorage } from "oncekey/client";
import { submissionStorageSuite } from "oncekey/testing";
import { describe, it } from "vitest";
import { INSECURE_HOST, withChromium } from "../support/chromium.ts";
import { suiteInPage } from "./submission-hosts/chromium.ts";
import { fileHarness, noFullDisk } from "./submission-hosts/file.ts";

const FULL = "raises when the medium is full, with the older one still whole, and goes on when there is room";
const DAMAGED = "raises for a damaged submission instead of taking it for a missing one, and lists the others";

submissionStorageSuite(
  { describe, it },
  "memory",
  async () => {
    const storage = memoryStorage();
    const cannot = async () => {
      throw new Error("Memory can be neither filled nor damaged.");
    };
    return { open: async () => storage, fill: cannot, damage: cannot, close: async () => {} };
  },
  { limits: { [FULL]: "a process out of memory raises nothing, it ends", [DAMAGED]: "objects are not read again" } },
);

const noLimit = noFullDisk();
submissionStorageSuite({ describe, it }, "file", fileHarness, noLimit === null ? {} : { limits: { [FULL]: noLimit } });

withChromium(() => {
  suiteInPage("indexedDB", "indexedDB with Web Locks", "127.0.0.1");
  suiteInPage("localStorage", "localStorage with Web Locks", "127.0.0.1");
  suiteInPage("indexedDB", "indexedDB with leases (no secure context)", INSECURE_HOST);
  suiteInPage("localStorage", "localStorage with leases (no secure context)", INSECURE_HOST);
});
