import { joinSession } from "@github/copilot-sdk/extension";

const cycle = { name: "cycle" };
cycle.itself = cycle;

const values = {
  cyclic: () => cycle,
  cyclic_result: () => ({ textResultForLlm: "seen", resultType: "success", toolTelemetry: { cycle } }),
  big_inside: () => ({ n: 1n }),
  throws_inside: () => ({ toJSON: () => { throw new Error("no JSON of me"); } }),
  throwing_member: () => ({ get textResultForLlm() { throw new Error("no text of me"); } }),
};

const tools = Object.entries(values).map(([name, handler]) => ({ name, handler, skipPermission: true }));
tools.push({
  name: "check",
  handler: async () => {
    const lines = [];
    for (const toolName of Object.keys(values)) {
      const { resultType, textResultForLlm, error } = await session.rpc.tools.execute({ toolName, arguments: {} });
      const begins = textResultForLlm.startsWith(`The tool ${toolName} failed with the arguments {}: `);
      lines.push(`${toolName}: ${resultType} ${begins} ${textResultForLlm.endsWith(error)} ${error.split(":")[0]}`);
    }
    return lines.join("\n");
  },
});

const session = await joinSession({ tools });
