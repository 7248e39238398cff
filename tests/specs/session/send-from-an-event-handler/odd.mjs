import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("user.message", ({ data }) => ["0", "2"].includes(data.content) && session.send(String(Number(data.content) + 1)));
