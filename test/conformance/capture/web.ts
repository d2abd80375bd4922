import { idempotent as fetchIdempotent } from "oncekey/fetch";
import { fetchListener } from "../adapter-hosts/fetch-listener.ts";
import { listening } from "../adapter-hosts/listening.ts";
import type { CaptureHost } from "./compare.ts";
import { type WebAnswering, webWays } from "./ways-web.ts";

/** The Fetch interface by itself. */
export const fetchCapture: CaptureHost<WebAnswering> = {
  name: "fetch",
  ways: { ...webWays, "a reason phrase": "the host of this test sends none" },
  async serve([mount], { operation, scope, ran }) {
    const answer = webWays[mount?.way ?? "text"] as WebAnswering;
    const once = fetchIdempotent(operation, { scope }, async () => {
      ran();
      return answer();
    });
    const { listen, close } = listening();
    const port = await listen(
      fetchListener(async (request) => (new URL(request.url).pathname === mount?.once ? once(request) : answer())),
    );
    return { port, close };
  },
};
