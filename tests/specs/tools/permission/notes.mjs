import { joinSession } from "@github/copilot-sdk/extension";

const notes = [];

await joinSession({
  tools: [
    { name: "write", description: "Keeps a text", handler: ({ text }) => `${notes.push(text)} kept` },
    { name: "read", description: "Gives the texts", skipPermission: true, handler: () => notes.join(" ") },
  ],
});
