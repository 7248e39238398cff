// __name__: __description__
//
// The types are removed when it is loaded, so there is nothing to build; an editor or tsc checks them.

import { joinSession } from "@github/copilot-sdk/extension";
import type { Tool, ToolInvocation, ToolResultObject } from "@github/copilot-sdk";

interface ExampleArgs {
  text?: string;
}

/** A result that tells the model what was wrong, so that its next call can succeed. */
function failure(text: string): ToolResultObject {
  return { textResultForLlm: text, resultType: "failure" };
}

const example: Tool<ExampleArgs> = {
  name: "__tool__",
  // The model chooses by this sentence: say what the tool does, and when to use it.
  description: "Counts the words of a text. An example: replace it.",
  parameters: {
    type: "object",
    properties: { text: { type: "string", description: "The text to count" } },
    required: ["text"],
    additionalProperties: false,
  },
  skipPermission: true, // it changes nothing, so the person need not be asked
  handler: async ({ text }: ExampleArgs, _invocation: ToolInvocation): Promise<string | ToolResultObject> => {
    // A schema is a hint to the model; what the code relies on is checked here.
    if (typeof text !== "string") return failure('"text" must be a string.');
    const words: string[] = text.split(/\s+/).filter(Boolean);
    return `${words.length} words`;
  },
};

await joinSession({ tools: [example] });
