import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "send",
    handler: () => session.sendAndWait({
      prompt: "look at these",
      attachments: [
        { type: "file", path: "/tmp/a.txt", displayName: "a" },
        { type: "directory", path: "/tmp" },
        { type: "selection", filePath: "/tmp/a.txt", displayName: "a:1", selection: { start: { line: 1, character: 0 }, end: { line: 2, character: 0 } }, text: "x" },
        { type: "blob", data: "aGk=", mimeType: "image/png" },
      ],
    }),
  }],
});
