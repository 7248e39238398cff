// Canvases: pages that an extension serves and the host shows.

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
    this.declaration = {
      id: options.id,
      displayName: options.displayName ?? options.id,
      description: options.description ?? "",
      inputSchema: options.inputSchema,
      actions: actions.map(({ handler: _handler, ...declaration }) => declaration),
    };
    this.open = options.open;
    this.onClose = options.onClose;
    this.actionHandlers = new Map(actions.map((action) => [action.name, action.handler]));
  }
}

export function createCanvas(options) {
  return new Canvas(options);
}
