import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const all = [];
      for (;;) {
        const text = "x".repeat(1 << 20) + all.length;
        // Looking at a character makes one piece of the text.
        text.charCodeAt(0);
        all.push(text);
      }
    },
  }],
});
