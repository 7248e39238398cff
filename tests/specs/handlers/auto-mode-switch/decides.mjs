import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onAutoModeSwitchRequest: ({ errorCode, retryAfterSeconds }, { sessionId }) => {
    console.log(`${errorCode} ${retryAfterSeconds} ${sessionId === session.sessionId}`);
    if (!errorCode) throw new Error("which error?");
    return retryAfterSeconds > 60 ? "yes" : undefined;
  },
});
