import { joinSession } from "@github/copilot-sdk/extension";

setInterval(() => {}, 1000);
await new Promise(() => {});
await joinSession({});
