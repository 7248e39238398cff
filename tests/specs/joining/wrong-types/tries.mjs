import { joinSession } from "@github/copilot-sdk/extension";

const configurations = [
  null,
  "text",
  5,
  { tools: {} },
  { hooks: "text" },
  { hooks: { onPreToolUse: "text" } },
  { commands: "text" },
  { canvases: {} },
  { onEvent: {} },
  { onPermissionRequest: "approve" },
  { onUserInputRequest: {} },
  { onElicitationRequest: [] },
  { onExitPlanModeRequest: 1 },
  { onAutoModeSwitchRequest: "yes" },
  { requestedEnvironmentVariables: "TOKEN" },
  { requestedEnvironmentVariables: ["TOKEN", 1] },
];
for (const configuration of configurations) {
  try {
    await joinSession(configuration);
    console.log(`joined with ${JSON.stringify(configuration)}`);
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
}
await joinSession();
