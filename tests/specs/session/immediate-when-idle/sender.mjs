import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ commands: [{ name: "send", handler: () => session.sendAndWait({ prompt: "now", mode: "immediate" }) }] });
