import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: ({ path }) => {
    console.log(`asked about ${path}`);
    return { kind: "no-result" };
  },
});
