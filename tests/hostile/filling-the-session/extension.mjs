import { joinSession } from "@github/copilot-sdk/extension";
import { execSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

// As in host/src/session/quota.rs and files.rs.
const MAX_FILES = 10_000;
const MAX_BYTES = 256 * 1024 * 1024;
const MAX_FILE_BYTES = 16 * 1024 * 1024;

const session = await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const files = path.join(session.workspacePath, "files");
      const create = (name, content) => session.rpc.workspaces.createFile({ path: name, content });
      const refused = async (doing, words) => {
        try {
          await doing;
        } catch (error) {
          if (!words.test(error.message)) throw error;
          return;
        }
        throw new Error(`broke: ${words} was not said`);
      };

      await create("one", "1");
      const each = (program) => execSync(`seq 1 ${MAX_FILES - 1} | xargs ${program}`, { cwd: files });
      each("touch");
      await refused(create("one-more", ""), /10000 files/);
      if (fs.existsSync(path.join(files, "one-more"))) throw new Error("broke: it was written all the same");
      each("rm");
      await create("one-more", "");

      // It takes no room on the disk, and counts as what it says.
      fs.writeFileSync(path.join(files, "large"), "");
      fs.truncateSync(path.join(files, "large"), MAX_BYTES - 10);
      await create("small", "12345678");
      await refused(create("larger", "12"), /256 MB/);
      fs.unlinkSync(path.join(files, "large"));
      await create("larger", "12");

      const long = "x".repeat(MAX_FILE_BYTES + 1);
      await refused(create("long", long), /longer than 16777216 bytes/);
      await refused(session.rpc.plan.update({ content: long }), /the plan/);
      if ((await session.rpc.plan.read()).exists) throw new Error("broke: the plan was written all the same");
      await session.rpc.plan.update({ content: "short" });
      return "held";
    },
  }],
});
