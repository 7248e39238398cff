import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const show = (event) => {
  const { id, timestamp, data } = event;
  console.log(`${event.type}: ${Object.keys(event).sort().join(" ")}`);
  console.log(`data ${JSON.stringify(data)}`);
  console.log(`id is a uuid: ${/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)}; timestamp is ISO 8601: ${new Date(timestamp).toISOString() === timestamp}`);
  console.log(`ephemeral: ${event.ephemeral}`);
};
session.on("test.kept", show);
session.on("test.passing", show);
