import { type Check, NotLooked } from "./check.ts";

/** Keys that come again with another payload. Such a request is refused and leaves no row, so that the database cannot tell. */
export const keyReuseCheck: Check = {
  name: "key reuse",
  needs: "server",
  async look() {
    throw new NotLooked(
      "a key that comes again with another payload is refused and leaves no row; count answers of 422 idempotency_payload_mismatch by client in your logs or metrics",
    );
  },
};
