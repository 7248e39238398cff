import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onElicitationRequest: ({ message, elicitationSource }) => {
    console.log(`left is asked: ${message} by ${elicitationSource}`);
    return undefined;
  },
  commands: [{ name: "left", handler: async () => console.log(`left got ${await session.ui.confirm("Left?")}`) }],
});
