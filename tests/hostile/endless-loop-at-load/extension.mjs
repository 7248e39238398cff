import { joinSession } from "@github/copilot-sdk/extension";

for (;;) {}

await joinSession({});
