import { joinSession } from "@github/copilot-sdk/extension";
import net from "node:net";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      let handle;
      try {
        const { TCP } = process.binding("tcp_wrap");
        handle = new TCP(1);
        const server = net.createServer();
        await new Promise((resolve, reject) => {
          server.once("error", reject);
          server.listen(handle, resolve);
        });
        throw new Error(`broke: it listens at ${JSON.stringify(server.address())}`);
      } catch (error) {
        if (String(error).includes("broke")) throw error;
      }
      return "held";
    },
  }],
});
