import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("test.a", ({ type }) => console.log(type));
