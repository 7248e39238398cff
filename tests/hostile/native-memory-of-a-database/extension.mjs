import { joinSession } from "@github/copilot-sdk/extension";
import { DatabaseSync } from "node:sqlite";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const database = new DatabaseSync(":memory:");
      database.exec("create table t (b blob)");
      const insert = database.prepare("insert into t values (zeroblob(16000000))");
      for (;;) {
        insert.run();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  }],
});
