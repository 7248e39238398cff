// Slash commands: what a person types, and the function it starts.

import { serve, warn } from "ext:tenon/bridge.js";
import { registered } from "ext:tenon/registrations.js";

/** Checks the commands of one `joinSession` and returns what the host needs to know of them. */
export function readCommands(commands) {
  const handlers = new Map();
  if (commands === undefined || commands === null) return { declared: [], handlers };
  if (!Array.isArray(commands)) throw new TypeError("joinSession: `commands` must be an array");
  const declared = commands.map((command, index) => {
    const name = readName(command, index);
    if (handlers.has(name)) {
      throw new Error(`joinSession: the command name "${name}" is used twice; every command needs a name of its own`);
    }
    if (typeof command.handler !== "function") {
      warn(`the command "/${name}" has no handler; using it will fail`);
    }
    handlers.set(name, command.handler);
    return { name, description: String(command.description ?? "") };
  });
  return { declared, handlers };
}

/** The name without the slash that some authors write before it. */
function readName(command, index) {
  const name = typeof command?.name === "string" ? command.name.replace(/^\//, "") : "";
  if (name === "") throw new Error(`joinSession: commands[${index}] has no name`);
  // What follows the first space is the command's arguments, so such a command could not be typed.
  if (/\s/.test(name)) throw new Error(`joinSession: the command name ${JSON.stringify(name)} must not contain spaces`);
  return name;
}

serve("command", async ({ commandName, command, args, sessionId }) => {
  const handler = registered("commands").get(commandName);
  if (typeof handler !== "function") throw new Error(`the command "/${commandName}" has no handler`);
  await handler({ sessionId, command, commandName, args });
  return null;
});
