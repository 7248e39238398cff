import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on(({ type }) => (type === "*" || type.startsWith("test.")) && console.log(type));
