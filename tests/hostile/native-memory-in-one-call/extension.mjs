import { joinSession } from "@github/copilot-sdk/extension";
import { DatabaseSync } from "node:sqlite";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const database = new DatabaseSync(":memory:");
      database.exec("CREATE TABLE t (x BLOB)");
      database.exec(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO t SELECT randomblob(1000000) FROM n",
      );
    },
  }],
});
