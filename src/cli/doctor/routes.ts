import { type Check, NotLooked } from "./check.ts";

/** Routes that change something and that no operation answers. They stand in the service's code alone. */
export const routesCheck: Check = {
  name: "routes",
  needs: "server",
  async look() {
    throw new NotLooked(
      "the database knows no routes; look through the service's own for POST, PUT, PATCH and DELETE without idempotent(), or try one from outside: oncekey verify <url>",
    );
  },
};
