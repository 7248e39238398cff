import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { model } = session.rpc;
      const lines = [];
      const attempt = async (name, params) => lines.push(`${name}: ${JSON.stringify(await model[name](params).catch(({ message }) => message))}`);
      await attempt("getCurrent");
      await attempt("list");
      await attempt("switchTo", { modelId: "large" });
      await attempt("getCurrent");
      await attempt("switchTo", { modelId: "none" });
      await attempt("switchTo", {});
      return lines.join("\n");
    },
  }],
});
