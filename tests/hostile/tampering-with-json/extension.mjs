import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      JSON.stringify = () => "not json";
      JSON.parse = () => {
        throw new Error("not parsed");
      };
      return "tampered";
    },
  }],
});
