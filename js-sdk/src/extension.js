// What `@github/copilot-sdk/extension` gives to an extension.

import { request, stay, warn } from "ext:tenon/bridge.js";
import { Canvas, CanvasError, createCanvas, readCanvases } from "ext:tenon/canvas.js";
import { readCommands } from "ext:tenon/commands.js";
import { checkKeys, readVariableNames } from "ext:tenon/config.js";
import { add, ALL, remove, unsubscribe, wantedTypes } from "ext:tenon/events.js";
import { defineFactory, FactoryResumeError, isFactoryRunTerminal } from "ext:tenon/factory.js";
import { readHandler, readHandlers } from "ext:tenon/handlers.js";
import { readHooks } from "ext:tenon/hooks.js";
import { LiveState } from "ext:tenon/live-state.js";
import { register } from "ext:tenon/registrations.js";
import { CopilotSession } from "ext:tenon/session.js";
import { readTools } from "ext:tenon/tools.js";

export { Canvas, CanvasError, createCanvas, defineFactory, FactoryResumeError, isFactoryRunTerminal };

/** Joins the session that this extension was loaded for. */
export async function joinSession(config = {}) {
  checkKeys(config);
  // All of it is read first: a mistake anywhere must leave nothing behind.
  const parts = {
    tools: readTools(config.tools),
    hooks: readHooks(config.hooks),
    commands: readCommands(config.commands),
    canvases: readCanvases(config.canvases),
    handlers: readHandlers(config),
  };
  const names = readVariableNames(config.requestedEnvironmentVariables);
  const onEvent = readHandler(config, "onEvent");

  // Calls and events may come as soon as the host has agreed, which is before this function goes on.
  const live = new LiveState();
  const everyEvent = onEvent && add(ALL, (event) => onEvent(event));
  const { before, agree, takeBack } = register({ ...each(parts, "handlers"), onEvent: everyEvent });
  let info;
  try {
    info = await request("session.join", {
      ...each(parts, "declared"),
      requestedEnvironmentVariables: names,
      subscribe: wantedTypes(),
    });
  } catch (error) {
    takeBack();
    live.end();
    if (everyEvent) remove(everyEvent);
    throw error;
  }
  agree();
  stay();
  if (before) warn("joinSession was called again; what the earlier call registered is replaced");
  if (before?.onEvent) unsubscribe(before.onEvent);
  live.begin(info);
  for (const [name, value] of Object.entries(info.environment ?? {})) globalThis.process.env[name] = value;
  return new CopilotSession(info, live);
}

/** One member of every part, under the part's name. */
function each(parts, member) {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part[member]]));
}
