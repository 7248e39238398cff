import { joinSession } from "@github/copilot-sdk/extension";

let tell;
const said = new Promise((resolve) => (tell = resolve));

const rejoin = async (configuration) => {
  try {
    await joinSession(configuration);
  } catch (error) {
    console.log(error.message);
  }
};
await joinSession({
  tools: [{ name: "first", handler: () => "still there" }, { name: "heard", handler: () => said }],
  onPermissionRequest: () => ({ kind: "approve-once" }),
  onEvent: ({ type }) => type === "test.said" && tell("the first heard it"),
  commands: [{
    name: "rejoin",
    handler: async () => {
      await rejoin({ tools: [{ name: "not valid" }] });
      await rejoin({
        tools: [{ name: "first", handler: () => "replaced" }, { name: "bash", handler: () => "" }],
        onPermissionRequest: () => ({ kind: "reject" }),
        onEvent: ({ type }) => type === "test.said" && console.log("the second heard it"),
      });
    },
  }],
});
