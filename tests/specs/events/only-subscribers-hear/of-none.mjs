import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("test", ({ type }) => console.log(type));
session.on("test.A", ({ type }) => console.log(type));
session.on("test.*", ({ type }) => console.log(type));
