import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onElicitationRequest: ({ message, elicitationSource }) => {
    console.log(`right is asked: ${message} by ${elicitationSource}`);
    return { action: "accept", content: { confirmed: true } };
  },
  commands: [{ name: "right", handler: async () => console.log(`right got ${await session.ui.confirm("Right?")}`) }],
});
