// What a handler returns, as the one shape the host understands.

import { describeError, plain, warn } from "ext:tenon/bridge.js";

const RESULT_TYPES = new Set(["success", "failure", "rejected", "denied", "timeout"]);

/** The longest text a tool may return, in characters. Beyond it the model could not read it, and every
 * process on the way would hold a copy. The runtime sets it when the extension is known. */
let maxResultChars = 16 * 1024 * 1024;

/** Sets the longest text a tool may return. */
export function limitResults(chars) {
  maxResultChars = chars;
}

/** Makes a result object of whatever the handler returned. */
export function toResult(value, toolName) {
  const result = shape(value, toolName);
  const size = sizeOf(result);
  if (size <= maxResultChars) return result;
  return failure(
    `The result of \`${toolName}\` is ${showSize(size, 1)} long; the limit is ` +
      `${showSize(maxResultChars, 0)} (result-kb). Write it to a file and return the path.`,
  );
}

/** A size in the unit that fits; in megabytes with decimals where they would not all be zero. */
function showSize(chars, digits) {
  const megabytes = chars / (1024 * 1024);
  if (megabytes < 1) return `${Math.ceil(chars / 1024)} KB`;
  return `${megabytes.toFixed(Number.isInteger(megabytes) ? digits : 1)} MB`;
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
