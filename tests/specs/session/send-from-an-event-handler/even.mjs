import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("user.message", ({ data }) => data.content === "1" && session.send("2"));
