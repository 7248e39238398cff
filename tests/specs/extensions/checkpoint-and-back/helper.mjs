import { joinSession } from "@github/copilot-sdk/extension";
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";

const git = (...args) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { encoding: "utf8", stdio: "pipe" });
let idle = Promise.resolve();
const session = await joinSession({
  tools: [
    { name: "write", description: "Writes a file", handler: ({ file, text }) => writeFileSync(file, text) },
    { name: "git_sees", description: "What git itself sees", handler: () => git("log", "--format=%s") + git("status", "--porcelain") },
    {
      name: "init",
      description: "Makes a repository, and has everybody loaded again in it",
      handler: async () => {
        git("init", "--quiet");
        git("add", "--all");
        git("commit", "--quiet", "-m", "The beginning");
        await session.rpc.extensions.reload();
      },
    },
    {
      name: "checkpoints",
      description: "Lists checkpoints without their times, once the turn has ended for everybody",
      handler: async () => {
        await idle;
        const { textResultForLlm } = await session.rpc.tools.execute({ toolName: "checkpoint_list", arguments: {} });
        return textResultForLlm.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "(time)");
      },
    },
  ],
  hooks: {
    onUserPromptSubmitted: () => {
      idle = new Promise((resolve) => session.on("session.idle", resolve));
    },
  },
});
if (existsSync(".git/HEAD")) await session.log("there is a repository");
