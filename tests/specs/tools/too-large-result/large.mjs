import { joinSession } from "@github/copilot-sdk/extension";

const MEGABYTE = 1024 * 1024;
const text = (length) => "x".repeat(length);

const session = await joinSession({
  tools: [
    { name: "text", handler: () => text(17 * MEGABYTE) },
    { name: "hidden", handler: () => ({ textResultForLlm: "small", resultType: "success", binaryResultsForLlm: [{ data: text(20 * MEGABYTE) }] }) },
    { name: "most", skipPermission: true, handler: () => text(15 * MEGABYTE) },
    {
      name: "largest",
      handler: async () => {
        const { resultType, textResultForLlm } = await session.rpc.tools.execute({ toolName: "most", arguments: {} });
        return `${resultType} ${textResultForLlm.length / MEGABYTE} MB`;
      },
    },
  ],
});
