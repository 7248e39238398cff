// What `@github/copilot-sdk` gives to an extension: the helpers around the contract.

import { CopilotSession } from "ext:tenon/session.js";

export * from "ext:tenon/extension.js";
export { CopilotSession };

/** A permission handler that says yes to everything, except what an administrator decides. */
export const approveAll = (request) => ({ kind: request?.managedApprovalRequired ? "no-result" : "approve-once" });

/** A permission together with how it was decided. */
export function createAttributedPermissionResult(result, decisionContext) {
  return { kind: "attributed", result: result?.kind === "attributed" ? result.result : result, decisionContext };
}

/** A tool from its name and the rest of its definition. */
export function defineTool(name, definition) {
  return { name, ...definition };
}

/** An MCP `tools/call` result as a tool result. */
export function convertMcpCallToolResult({ content = [], isError = false } = {}) {
  const texts = [];
  const binaries = [];
  for (const block of content) {
    if (block.type === "text" && typeof block.text === "string") texts.push(block.text);
    if (block.type === "image" && block.data && typeof block.mimeType === "string") {
      binaries.push({ type: "image", data: block.data, mimeType: block.mimeType });
    }
    if (block.type === "resource") {
      const { text, blob, mimeType, uri } = block.resource ?? {};
      if (text) texts.push(text);
      if (blob) {
        binaries.push({ type: "resource", data: blob, mimeType: mimeType || "application/octet-stream", description: uri });
      }
    }
  }
  const result = { textResultForLlm: texts.join("\n"), resultType: isError ? "failure" : "success" };
  if (binaries.length > 0) result.binaryResultsForLlm = binaries;
  return result;
}

/** The original's own client starts another Copilot. There is none behind this host. */
export class CopilotClient {
  constructor() {
    throw new Error(
      "CopilotClient starts a Copilot process of its own, which this host does not have; " +
        "use the session that joinSession returns",
    );
  }
}

export const RuntimeConnection = Object.freeze({
  forStdio: (options) => ({ kind: "stdio", ...options }),
  forTcp: (options) => ({ kind: "tcp", ...options }),
  forUri: (url, options) => ({ kind: "uri", url, ...options }),
  forInProcess: (options) => ({ kind: "in-process", ...options }),
});
