import { joinSession } from "@github/copilot-sdk/extension";

const handler = () => "done";
const tool = (more) => ({ name: "t", handler, ...more });
const many = (count, make) => Array.from({ length: count }, (_, number) => make(number));

const tries = {
  tools: { tools: many(1001, (number) => tool({ name: `t${number}` })) },
  commands: { commands: many(1001, (number) => ({ name: `c${number}`, handler })) },
  "a tool's name": { tools: [tool({ name: "n".repeat(257) })] },
  "a command's name": { commands: [{ name: "n".repeat(257), handler }] },
  "a tool's description": { tools: [tool({ description: "d".repeat(64 * 1024 + 1) })] },
  "a tool's schema": { tools: [tool({ parameters: { enum: ["x".repeat(1024 * 1024)] } })] },
  "a command's description": { commands: [{ name: "c", description: "d".repeat(1024 * 1024), handler }] },
};
for (const [what, config] of Object.entries(tries)) {
  try {
    await joinSession(config);
    console.error(`${what}: joined`);
  } catch (error) {
    console.log(`${what}: ${error.message}`);
  }
}

await joinSession({
  tools: [
    tool({ name: "n".repeat(256), description: "d".repeat(64 * 1024), parameters: { enum: ["x".repeat(900 * 1024)] } }),
    ...many(999, (number) => tool({ name: `t${number}` })),
  ],
});
