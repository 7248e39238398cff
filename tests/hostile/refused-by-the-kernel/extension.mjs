import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";
import net from "node:net";

const PATH = "/tmp/tenon-is-never-made";

const attempts = {
  mkdir: () => fs.mkdirSync(PATH),
  write: () => fs.writeFileSync(PATH, ""),
  later: () => fs.promises.mkdir(PATH),
  stream: () => new Promise((resolve, reject) => fs.createWriteStream(PATH).on("error", reject).on("open", resolve)),
  socket: () => new Promise((resolve, reject) => net.connect(PATH).on("error", reject).on("connect", resolve)),
};

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (const [name, attempt] of Object.entries(attempts)) {
        let error;
        try {
          await attempt();
        } catch (caught) {
          error = caught;
        }
        if (!error) throw new Error(`broke: ${name} was done`);
        const says = /^project:culprit has no [a-z ]+ access to "\/tmp\/tenon-is-never-made"; it can be granted in the user's configuration$/;
        if (!says.test(error.message)) throw new Error(`broke: ${name} says: ${error.name}: ${error.message}`);
      }
      return "explained";
    },
  }],
});
