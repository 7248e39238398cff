import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (const number of [-1, -2147483648, 4294967295, 1e300, Number.NaN]) {
        try {
          const { TTY } = process.binding("tty_wrap");
          new TTY(number, {});
        } catch {
          // A JavaScript error is what it should be.
        }
      }
      return "held";
    },
  }],
});
