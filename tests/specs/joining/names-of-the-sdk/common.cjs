const { approveAll } = require("@github/copilot-sdk");
const { joinSession } = require("@tenon/sdk/extension");

joinSession({ tools: [{ name: "common", handler: () => `${typeof approveAll} ${typeof module.exports}` }] });
