import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "rejoin",
    handler: async () => {
      const asked = new Promise((resolve) => session.on("permission.requested", resolve));
      joinSession({
        tools: [{ name: "stale_tool", handler: () => "x" }],
        requestedEnvironmentVariables: ["A_TOKEN"],
      }).catch(() => {});
      await asked;
      return "asked";
    },
  }],
});
