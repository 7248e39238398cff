import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    handler: async () => {
      const { agent, mcp, metadata, permissions, plan, skills, tasks } = session.rpc;
      const asked = { agents: agent.list(), agent: agent.getCurrent(), servers: mcp.list(), context: metadata.contextInfo(),
        paths: permissions.paths.list(), todos: plan.readSqlTodos(), skills: skills.list(), tasks: tasks.list() };
      const lines = [];
      for (const [name, answer] of Object.entries(asked)) lines.push(`${name} ${JSON.stringify(await answer)}`);
      return lines.join("\n");
    },
  }],
});
