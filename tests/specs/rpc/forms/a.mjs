import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { ui } = session.rpc;
      const filled = await ui.elicitation({ message: "How large?", requestedSchema: { type: "object", properties: { size: { type: "integer" } } } });
      return [filled, await ui.elicitation({ requestedSchema: {} }).then(() => "shown", () => "refused")];
    },
  }],
});
