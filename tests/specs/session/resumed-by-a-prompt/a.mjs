import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({ hooks: { onSessionStart: ({source}) => { console.log("start", source); } } });
