import { joinSession } from "@github/copilot-sdk/extension";

const parts = [];
let heardAll;
const all = new Promise((resolve) => (heardAll = resolve));

await joinSession({
  streaming: false,
  onEvent: ({ type, data }) => {
    if (type === "assistant.message_delta" && parts.push(data.deltaContent) === 2) heardAll();
  },
  tools: [{ name: "told", handler: () => all.then(() => parts) }],
});
