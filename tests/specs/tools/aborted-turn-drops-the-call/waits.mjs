import { joinSession } from "@github/copilot-sdk/extension";

let stopped;
const stopping = new Promise((resolve) => (stopped = resolve));

const session = await joinSession({
  tools: [
    {
      name: "waits",
      handler: (args, { signal }) => new Promise(() => {
        signal.addEventListener("abort", () => stopped(`${signal.reason.name} ${signal.aborted}`));
        session.log("waits");
      }),
    },
    { name: "saw", handler: () => stopping },
  ],
});
