import { joinSession } from "@github/copilot-sdk/extension";
import { symlinkSync } from "node:fs";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { workspaces } = session.rpc;
      const lines = [];
      const attempt = async (name, params) => lines.push(`${name}: ${JSON.stringify(await workspaces[name](params).catch(({ message }) => message))}`);
      await attempt("getWorkspace");
      await attempt("listFiles");
      await attempt("createFile", { path: "notes/a.txt", content: "one\n" });
      await attempt("createFile", { path: "notes/a.txt", content: "two\n" });
      await attempt("listFiles");
      await attempt("readFile", { path: "notes/a.txt" });
      symlinkSync("/etc", `${session.workspacePath}/files/link`);
      for (const path of ["../plan.md", "/etc/hosts", "notes/../../x", "", "link/hosts"]) await attempt("readFile", { path });
      await attempt("createFile", { path: "../events.jsonl", content: "" });
      await attempt("createFile", { path: "link/tenon", content: "" });
      await attempt("createFile", { path: "b.txt" });
      await attempt("readFile", {});
      return lines.join("\n");
    },
  }],
});
