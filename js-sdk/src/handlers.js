// Request handlers: they answer what would otherwise be asked of the person.

import { serve } from "ext:tenon/bridge.js";
import { registered } from "ext:tenon/registrations.js";

/** The handlers that the host calls, by their name in `joinSession`'s configuration. */
export const REQUEST_HANDLERS = [
  "onPermissionRequest",
  "onUserInputRequest",
  "onElicitationRequest",
  "onExitPlanModeRequest",
  "onAutoModeSwitchRequest",
];

/** Checks the handlers of one `joinSession` and returns what the host needs to know of them. */
export function readHandlers(config) {
  const handlers = new Map();
  for (const name of REQUEST_HANDLERS) {
    const handler = readHandler(config, name);
    if (handler) handlers.set(name, handler);
  }
  return { declared: [...handlers.keys()], handlers };
}

/** A function of the configuration, or nothing. */
export function readHandler(config, name) {
  const handler = config[name];
  // `enabled && handler` is a common way to leave a handler out.
  if (!handler) return undefined;
  if (typeof handler !== "function") throw new TypeError(`joinSession: \`${name}\` must be a function`);
  return handler;
}

serve("handler", async ({ handler: name, request, invocation }) => {
  const handler = registered("handlers").get(name);
  if (!handler) throw new Error(`this extension has no ${name}`);
  return unwrap(name, await call(name, handler, request, invocation));
});

function call(name, handler, request, invocation) {
  // The contract gives this one a single argument, with the session in it.
  if (name === "onElicitationRequest") return handler({ ...request, sessionId: invocation?.sessionId });
  return handler(request, invocation);
}

/** A permission may come with how it was decided; the host asks for the decision alone. */
function unwrap(name, answer) {
  return name === "onPermissionRequest" && answer?.kind === "attributed" ? answer.result : answer;
}
