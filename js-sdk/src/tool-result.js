// What a handler returns, as the one shape the host understands.

import { describeError, plain, warn } from "ext:tenon/bridge.js";

const RESULT_TYPES = new Set(["success", "failure", "rejected", "denied", "timeout"]);

/** The longest text a tool may return. Beyond it the model could not read it, and every process on
 * the way would hold a copy. */
export const MAX_RESULT_CHARS = 16 * 1024 * 1024;

/** Makes a result object of whatever the handler returned. */
export function toResult(value, toolName) {
  const result = shape(value, toolName);
  const size = sizeOf(result);
  if (size <= MAX_RESULT_CHARS) return result;
  const megabytes = (size / (1024 * 1024)).toFixed(1);
  return failure(
    `The result of \`${toolName}\` is ${megabytes} MB long; the limit is ` +
      `${MAX_RESULT_CHARS / (1024 * 1024)} MB. Write it to a file and return the path.`,
  );
}

/** A result whose `error` is a text. Handlers put the error itself there too. */
function withErrorText(value) {
  const { error } = value;
  if (error === undefined || typeof error === "string") return plain(value);
  const { error: _error, ...rest } = value;
  if (error === null) return plain(rest);
  const text = error instanceof Error ? describeError(error).message : (JSON.stringify(error) ?? String(error));
  return { ...plain(rest), error: cut(text) };
}

/** The characters of all texts in a result. */
function sizeOf(value) {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum, part) => sum + sizeOf(part), 0);
}

/** Makes a result object of whatever the handler threw. */
export function toFailure({ message, stack }, toolName, args) {
  let shown;
  try {
    shown = JSON.stringify(args);
  } catch {
    shown = "(arguments that cannot be shown)";
  }
  const result = failure(
    `The tool ${toolName} failed with the arguments ${cut(shown)}: ${cut(message)}`,
  );
  result.error = cut(message);
  if (stack) result.stack = cut(stack);
  return result;
}

/** The longest part of an error that is passed on. */
const MAX_ERROR_CHARS = 64 * 1024;

function cut(text) {
  return text?.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)} ... (cut)` : text;
}

function failure(text) {
  return { textResultForLlm: text, resultType: "failure", error: text };
}

function success(text) {
  return { textResultForLlm: text, resultType: "success" };
}

function shape(value, toolName) {
  switch (typeof value) {
    case "string":
      return success(value);
    case "undefined":
      return success("");
    case "object":
      break;
    default:
      return success(String(value));
  }
  if (value === null) return success("");
  if (typeof value.textResultForLlm === "string") {
    if (RESULT_TYPES.has(value.resultType)) return withErrorText(value);
    // The original shows the model the JSON text then; we do the same, and tell the author.
    warn(
      `${toolName} returned textResultForLlm with resultType ${JSON.stringify(value.resultType)}; ` +
        `expected one of ${[...RESULT_TYPES].join(", ")}. The model sees the JSON text.`,
    );
  }
  return success(JSON.stringify(value) ?? String(value));
}
