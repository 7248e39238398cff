import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: () => ({ kind: "approve-once" }),
  onUserInputRequest: () => ({ answer: "me", wasFreeform: true }),
  onElicitationRequest: () => ({ action: "cancel" }),
  onExitPlanModeRequest: () => ({ approved: false }),
  onAutoModeSwitchRequest: () => "no",
});
