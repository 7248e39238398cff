// Dialogs. All four are one form to the host; the three short ones make it, and take its one value out.

/** `session.ui`: `show` puts a form before the person, `capabilities` says whether there is one. */
export function dialogs(show, capabilities) {
  // Async, so that a host that cannot ask rejects, as one that fails to ask does.
  const form = async (name, message, requestedSchema) => {
    if (capabilities().ui?.elicitation !== true) {
      throw new Error(
        `session.ui.${name}: this host cannot ask the person; check session.capabilities.ui?.elicitation first`,
      );
    }
    return show({ message, requestedSchema });
  };
  const ask = async (name, message, key, field) => {
    const answer = await form(name, message, { type: "object", properties: { [key]: field }, required: [key] });
    return answer?.action === "accept" ? (answer.content?.[key] ?? null) : null;
  };
  return Object.freeze({
    elicitation: (params) => form("elicitation", params?.message, params?.requestedSchema),
    confirm: async (message) => (await ask("confirm", message, "confirmed", { type: "boolean", default: true })) === true,
    select: async (message, options) => {
      if (!Array.isArray(options)) throw new TypeError("session.ui.select: the options must be an array of texts");
      return ask("select", message, "selection", { type: "string", enum: options });
    },
    input: (message, options) => ask("input", message, "value", textField(options)),
  });
}

/** The rules for a text, of those that a form knows. */
const TEXT_RULES = ["title", "description", "minLength", "maxLength", "format", "default"];

function textField(options) {
  const field = { type: "string" };
  for (const rule of TEXT_RULES) {
    const value = options?.[rule];
    if (value !== undefined && value !== null) field[rule] = value;
  }
  return field;
}
