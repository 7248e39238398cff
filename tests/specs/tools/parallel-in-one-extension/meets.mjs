import { joinSession } from "@github/copilot-sdk/extension";

const waiting = new Map();

await joinSession({
  tools: [
    { name: "waits", handler: ({ for: name }) => new Promise((resolve) => waiting.set(name, resolve)) },
    {
      name: "lets_go",
      handler: ({ what }) => {
        for (const name of what) waiting.get(name)(`${name} goes on`);
        return `${waiting.size} called`;
      },
    },
  ],
});
