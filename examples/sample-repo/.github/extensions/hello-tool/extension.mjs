// hello-tool: the smallest useful extension. One tool, described by a JSON Schema.
//
// Try it:  tenon call say_hello --args '{"name":"Ada","language":"fr"}'

import { joinSession } from "@github/copilot-sdk/extension";

// A Map and not an object, so that a "language" such as "constructor" finds nothing.
const GREETINGS = new Map([
  ["de", { plain: "Hallo", formal: "Guten Tag" }],
  ["en", { plain: "Hello", formal: "Good day" }],
  ["es", { plain: "Hola", formal: "Buenos días" }],
  ["fr", { plain: "Bonjour", formal: "Bonjour" }],
  ["ja", { plain: "やあ", formal: "こんにちは" }],
]);
const LANGUAGES = [...GREETINGS.keys()];

// A failed result still carries text for the model: say what was wrong and what would work,
// so that the next call can succeed.
/** @param {string} text */
function failure(text) {
  return { textResultForLlm: text, resultType: "failure" };
}

const session = await joinSession({
  tools: [
    {
      // Letters, digits, "_" and "-" only; unique across every extension that is loaded.
      name: "say_hello",
      // The model picks tools by their description, so it says when to use it.
      description: "Greets a person by name. Use it when the user asks to greet somebody.",
      parameters: {
        type: "object",
        properties: {
          name: { type: "string", description: "Who to greet" },
          language: {
            type: "string",
            enum: LANGUAGES,
            description: "Language of the greeting (default en)",
          },
          formal: { type: "boolean", description: "Use the polite form (default false)" },
        },
        required: ["name"],
        additionalProperties: false,
      },
      handler: async (args) => {
        // The schema is a hint to the model. Copilot passes arguments on unchecked, so a tool
        // that must run on every host checks what it relies on.
        const name = typeof args?.name === "string" ? args.name.trim() : "";
        if (!name) return failure('say_hello needs a non-empty "name".');

        const language = args.language ?? "en";
        const words = GREETINGS.get(language);
        if (!words) {
          return failure(`No greeting for language "${language}". Known: ${LANGUAGES.join(", ")}.`);
        }
        // A plain string is a successful result.
        return `${args.formal ? words.formal : words.plain}, ${name}!`;
      },
    },
  ],
});

// Standard output belongs to the host's protocol; session.log is the way to tell the person
// something. "ephemeral" keeps this greeting out of the saved timeline.
await session.log(`hello-tool ready (${LANGUAGES.length} languages)`, { ephemeral: true });
