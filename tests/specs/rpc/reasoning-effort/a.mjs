import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { model } = session.rpc;
      await model.switchTo({ modelId: "large" });
      return [await model.setReasoningEffort({ reasoningEffort: "low" }), await model.getCurrent(), await model.setReasoningEffort({}).catch(({ message }) => message)];
    },
  }],
});
