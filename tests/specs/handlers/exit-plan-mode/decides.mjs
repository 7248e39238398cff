import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onExitPlanModeRequest: async (request, { sessionId }) => {
    console.log(`${request.summary} ${sessionId === session.sessionId}`);
    if (request.summary === "Drop it") throw new Error("undecided");
    if (request.actions.includes("autopilot")) return { approved: true, selectedAction: "autopilot" };
  },
});
