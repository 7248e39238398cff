import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { eventLog } = session.rpc;
      const lines = [];
      let cursor;
      const read = async (params) => {
        const part = await eventLog.read({ ...params, cursor });
        lines.push(`${part.events.map(({ type }) => type).join(" ") || "nothing"}; cursor ${part.cursor}, more ${part.hasMore}, ${part.cursorStatus}`);
        ({ cursor } = part);
      };
      await read({ max: 2 });
      await read({ max: 2, types: ["test.5"] });
      await read({});
      await read({ max: 0 });
      cursor = "9999";
      await read({});
      lines.push(await eventLog.read({ cursor: "x" }).catch(({ message }) => message));
      return lines.join("\n");
    },
  }],
});
