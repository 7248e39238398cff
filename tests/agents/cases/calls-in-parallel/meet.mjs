import { joinSession } from "@github/copilot-sdk/extension";

// Neither answers before the other has come.
let both;
const met = new Promise((resolve) => (both = resolve));
let here = 0;
await joinSession({
  tools: [
    {
      name: "meet",
      description: "Waits for another",
      skipPermission: true,
      handler: async () => {
        here += 1;
        if (here === 2) both();
        await met;
        return "both were here";
      },
    },
  ],
});
