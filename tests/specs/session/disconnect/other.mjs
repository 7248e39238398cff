import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ tools: [{ name: "stays", description: "A tool", handler: () => "here" }] });
session.on("test.a", () => console.log("hears"));
