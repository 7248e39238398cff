import { joinSession } from "@github/copilot-sdk/extension";
import { Worker } from "node:worker_threads";

const take = `
  const taken = [];
  const more = () => {
    if (taken.length < 100) taken.push(new Array(131072).fill(Math.random()));
    setTimeout(more, 1);
  };
  more();
`;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (let count = 0; count < 8; count += 1) new Worker(take, { eval: true });
      await new Promise(() => {});
    },
  }],
});
