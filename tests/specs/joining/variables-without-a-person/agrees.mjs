import { writeFileSync } from "node:fs";
import { approveAll } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ onPermissionRequest: approveAll });
writeFileSync("agrees", "");
