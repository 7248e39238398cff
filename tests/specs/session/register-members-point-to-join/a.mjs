import { joinSession } from "@github/copilot-sdk/extension";

const names = ["Tools", "Commands", "Canvases", "Hooks", "PermissionHandler", "UserInputHandler", "ElicitationHandler", "ExitPlanModeHandler", "AutoModeSwitchHandler"];
const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: () => names.map((name) => {
      try {
        return session[`register${name}`]([]);
      } catch ({ message }) {
        return message;
      }
    }).join("\n"),
  }],
});
