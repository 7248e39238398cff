import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: (request, invocation) => {
    console.log(`${request.kind} ${invocation.sessionId === session.sessionId}`);
    if (request.kind === "memory") throw new Error("do not remind me");
    return { kind: ["read", "write"].includes(request.kind) ? "approve-once" : "no-result" };
  },
});
