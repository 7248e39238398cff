import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("test.c", ({ type }) => console.log(type));
session.on("test.b", ({ type }) => console.log(type));
