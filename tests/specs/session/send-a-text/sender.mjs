import { joinSession } from "@github/copilot-sdk/extension";

const sent = [];
const session = await joinSession({
  tools: [{
    name: "send",
    description: "Sends",
    handler: async () => {
      sent.push(await session.send("as text"), await session.send({ prompt: "as object" }));
      return sent.map((id) => typeof id);
    },
  }],
});
session.on("user.message", ({ data }) => sent.includes(data.messageId) && console.log(`${data.content} is message ${sent.indexOf(data.messageId)}`));
