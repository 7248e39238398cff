import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ hooks: { onSessionStart: () => {} } });
session.on("session.start", ({ data, parentId }) => {
  const { sessionId, startTime, version, producer, copilotVersion, context } = data;
  console.log(`${sessionId === session.sessionId} ${new Date(startTime).toISOString() === startTime} ${version} ${producer} ${typeof copilotVersion} ${JSON.stringify(context)} ${parentId}`);
});
