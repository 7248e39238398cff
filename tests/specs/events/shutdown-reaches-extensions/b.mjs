import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on((event) => event.type === "session.shutdown" && console.log(Object.keys(event.data).join(" ")));
