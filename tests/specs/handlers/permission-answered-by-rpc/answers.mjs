import { joinSession } from "@github/copilot-sdk/extension";

const results = { read: { kind: "approve-once" }, write: { kind: "reject", feedback: "from afar" } };
const requests = [];
const answer = (requestId, result) => session.rpc.permissions.handlePendingPermissionRequest({ requestId, result });

const session = await joinSession({
  commands: [{
    name: "again",
    handler: async () => {
      for (const requestId of [...requests, "nonsense"]) console.log(JSON.stringify(await answer(requestId, results.read)));
    },
  }],
});
session.on("permission.requested", async ({ data: { requestId, permissionRequest } }) => {
  requests.push(requestId);
  const { success } = await answer(requestId, results[permissionRequest.kind]);
  console.log(`${permissionRequest.kind} ${success}`);
});
