import { joinSession } from "@github/copilot-sdk/extension";
import zlib from "node:zlib";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const all = [];
      for (;;) {
        const stream = zlib.createBrotliCompress();
        stream.write("x");
        all.push(stream);
        if (all.length % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    },
  }],
});
