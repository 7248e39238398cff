// Sending a prompt and waiting until the agent is done with it.

const DEFAULT_TIMEOUT_MS = 60_000;

/** The longest that a timer can wait; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Resolves to the last answer when the session is idle; rejects on an error, in time, or when the
 * extension leaves. `onLeave` takes a function to call then, and returns how to forget it.
 */
export function sendAndWait({ on, send, onLeave }, options, timeout) {
  const limit = timeout ?? DEFAULT_TIMEOUT_MS;
  return new Promise((resolve, reject) => {
    let answer;
    let timer;
    const undo = [];
    const settle = (how, value) => {
      clearTimeout(timer);
      for (const step of undo) step();
      how(value);
    };
    // Before sending: a quick agent may be done before the host has said that it took the prompt.
    undo.push(
      on("assistant.message", (event) => {
        answer = event;
      }),
      on("session.idle", ({ data }) => {
        // On autopilot the agent goes on by itself after it was idle.
        if (data?.mode !== "autopilot") settle(resolve, answer);
      }),
      on("session.error", ({ data }) => {
        // What an extension logs as an error is not the answer's.
        if (data?.errorType !== "notification" && data?.errorType !== "command") settle(reject, sessionError(data));
      }),
      onLeave((error) => settle(reject, error)),
    );
    if (limit <= MAX_TIMER_MS) {
      timer = setTimeout(() => settle(reject, new Error(`Timeout after ${limit}ms waiting for session.idle`)), limit);
    }
    send(options).catch((error) => settle(reject, error));
  });
}

function sessionError(data) {
  const error = new Error(String(data?.message ?? "the session reported an error"));
  // Where it happened in the agent says more than that it was heard of here.
  if (typeof data?.stack === "string") error.stack = data.stack;
  return error;
}
