import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("session.error", ({ data }) => console.log(data.errorType));
