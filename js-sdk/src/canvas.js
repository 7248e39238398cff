// Canvases: pages that an extension serves and the host shows.

import { describeError, serve } from "ext:tenon/bridge.js";
import { registered } from "ext:tenon/registrations.js";

/** An error with a code that the agent can act on. */
export class CanvasError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "CanvasError";
    this.code = code;
  }

  static noHandler() {
    return new CanvasError("canvas_action_no_handler", "this canvas action has no handler");
  }
}

/** The code of an error that came without one. */
const HANDLER_ERROR = "canvas_handler_error";

/** Names that begin like this are the host's own verbs. */
const RESERVED = "canvas.";

/** A canvas as `createCanvas` makes it; its declaration is what the host is told. */
export class Canvas {
  constructor(options) {
    if (typeof options?.id !== "string" || options.id === "") {
      throw new TypeError("createCanvas: `id` must be a non-empty string");
    }
    if (typeof options.open !== "function") {
      throw new TypeError(`createCanvas: \`open\` of the canvas "${options.id}" must be a function`);
    }
    const actions = options.actions ?? [];
    this.actionHandlers = readActions(options.id, actions);
    this.declaration = {
      id: options.id,
      displayName: options.displayName ?? options.id,
      description: options.description ?? "",
      inputSchema: options.inputSchema,
      actions: actions.map(({ handler: _handler, ...declaration }) => declaration),
    };
    this.open = options.open;
    this.onClose = options.onClose;
  }
}

export function createCanvas(options) {
  return new Canvas(options);
}

function readActions(id, actions) {
  if (!Array.isArray(actions)) throw new TypeError(`createCanvas: \`actions\` of the canvas "${id}" must be an array`);
  const handlers = new Map();
  for (const [index, action] of actions.entries()) {
    const name = action?.name;
    if (typeof name !== "string" || name === "") {
      throw new TypeError(`createCanvas: actions[${index}] of the canvas "${id}" has no name`);
    }
    if (name.startsWith(RESERVED)) {
      throw new Error(`createCanvas: the action name "${name}" must not begin with "${RESERVED}", which is reserved`);
    }
    if (handlers.has(name)) {
      throw new Error(`createCanvas: the action name "${name}" is used twice in the canvas "${id}"`);
    }
    handlers.set(name, action.handler);
  }
  return handlers;
}

/** Checks the canvases of one `joinSession` and returns what the host needs to know of them. */
export function readCanvases(canvases) {
  const handlers = new Map();
  if (canvases === undefined || canvases === null) return { declared: [], handlers };
  if (!Array.isArray(canvases)) throw new TypeError("joinSession: `canvases` must be an array");
  const declared = canvases.map((canvas, index) => {
    if (!(canvas instanceof Canvas)) {
      throw new TypeError(`joinSession: canvases[${index}] was not made by createCanvas`);
    }
    const { declaration } = canvas;
    if (handlers.has(declaration.id)) throw new Error(`joinSession: the canvas id "${declaration.id}" is used twice`);
    handlers.set(declaration.id, canvas);
    return declaration;
  });
  return { declared, handlers };
}

// An error is part of the answer here, because its code has to reach the agent.
serve("canvas", async ({ verb, request }) => {
  try {
    return { result: await run(verb, request) };
  } catch (error) {
    return { error: describeFailure(error) };
  }
});

async function run(verb, request) {
  const canvas = registered("canvases").get(request.canvasId);
  if (!canvas) throw new Error(`this extension has no canvas "${request.canvasId}"`);
  switch (verb) {
    case "open":
      return (await canvas.open(request)) ?? {};
    case "close":
      await canvas.onClose?.(request);
      return null;
    case "action": {
      const handler = canvas.actionHandlers.get(request.actionName);
      if (typeof handler !== "function") throw CanvasError.noHandler();
      return handler(request);
    }
    default:
      throw new Error(`a canvas cannot "${verb}"`);
  }
}

function describeFailure(error) {
  const { message, stack } = describeError(error);
  const failure = error instanceof CanvasError
    ? { code: String(error.code), message: String(error.message) }
    // The class of an error says nothing to the agent that the code does not.
    : { code: HANDLER_ERROR, message: error instanceof Error ? String(error.message) : message };
  if (stack) failure.stack = stack;
  return failure;
}
