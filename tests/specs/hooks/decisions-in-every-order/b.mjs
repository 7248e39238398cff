import { joinSession } from "@github/copilot-sdk/extension";

// The arguments say what each extension decides: { a: "allow", b: "deny", c: "ask" }.
await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => {
      console.log(toolArgs.b);
      return { permissionDecision: toolArgs.b, permissionDecisionReason: "b says so" };
    },
  },
});
