import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ tools: [{ name: "greet", handler: () => session.log("greeted") }] });
