import { joinSession } from "@github/copilot-sdk/extension";

let begun;
const beginning = new Promise((resolve) => (begun = resolve));
let stopped;
const stopping = new Promise((resolve) => (stopped = resolve));
let rest;
const resting = new Promise((resolve) => (rest = resolve));

const session = await joinSession({
  onEvent: ({ type }) => type === "session.idle" && rest(),
  tools: [{
    name: "waits",
    skipPermission: true,
    handler: (args, { signal }) => new Promise(() => {
      signal.addEventListener("abort", () => stopped(signal.reason.name));
      begun();
    }),
  }],
  commands: [{
    name: "interrupt",
    handler: async () => {
      const result = session.rpc.tools.execute({ toolName: "waits", arguments: {} });
      await beginning;
      await session.abort();
      const { resultType, textResultForLlm } = await result;
      console.log(`${resultType}: ${textResultForLlm}`);
      console.log(`the handler saw ${await stopping}`);
      await resting;
    },
  }],
});
