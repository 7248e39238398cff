import { joinSession } from "@github/copilot-sdk/extension";

try {
  await joinSession({ tools: [{ name: "no good" }] });
} catch {
  console.log("it does not join after all");
}
throw new Error("gave up");
