import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "counts", handler: ({ to }) => Array.from({ length: to }, (_, n) => n + 1).join(" ") },
    { name: "umlauts", handler: () => "ü".repeat(33) },
    { name: "fails", handler: () => ({ textResultForLlm: "long ".repeat(14), resultType: "failure", error: "too long" }) },
  ],
});
