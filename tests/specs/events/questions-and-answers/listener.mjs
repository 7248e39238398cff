import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const open = new Map();
session.on(({ type, data }) => {
  if (type.endsWith(".requested")) open.set(data.requestId, type);
  if (type.endsWith(".completed")) console.log(`${open.get(data.requestId)} -> ${type}`);
});
