import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({ tools: [{ name: "wa", handler: async () => {
  const errors = new Set(); let n = 0;
  for (let i = 0; i < 400; i++) { try { await session.rpc.plan.update({ content: "a".repeat(200000) }); } catch (e) { n++; errors.add(e.message); } }
  return n > 0 ? [...errors].join("|") : "no errors"; } },
  { name: "ra", handler: async () => { const { content } = await session.rpc.plan.read(); return content.length + " " + new Set(content).size; } }] });
