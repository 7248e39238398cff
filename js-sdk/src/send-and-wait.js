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
    let id;
    // The session may have been idle, or may have failed, just before it took the message; only what comes
    // after the event that says so is the message's.
    const taken = new Set();
    const outcomes = new Map();
    const undo = [];
    const settle = (how, value) => {
      clearTimeout(timer);
      for (const step of undo) step();
      how(value);
    };
    const look = () => {
      if (outcomes.has(id)) settle(...outcomes.get(id));
    };
    const note = (...outcome) => {
      for (const message of taken) if (!outcomes.has(message)) outcomes.set(message, outcome);
      look();
    };
    // Before sending: a quick agent may be done before the host has said that it took the prompt.
    undo.push(
      on("pending_messages.modified", ({ data }) => {
        if (data?.messageId === undefined) return;
        taken.add(data.messageId);
        answer = undefined;
      }),
      on("assistant.message", (event) => {
        answer = event;
      }),
      on("session.idle", ({ data }) => {
        // On autopilot the agent goes on by itself after it was idle.
        if (data?.mode !== "autopilot") note(resolve, answer);
      }),
      on("session.error", ({ data }) => {
        // What an extension logs as an error is not the answer's.
        if (data?.errorType !== "notification" && data?.errorType !== "command") note(reject, sessionError(data));
      }),
      onLeave((error) => settle(reject, error)),
    );
    if (limit <= MAX_TIMER_MS) {
      timer = setTimeout(() => settle(reject, new Error(`Timeout after ${limit}ms waiting for session.idle`)), limit);
    }
    send(options).then(
      (message) => {
        id = message;
        look();
      },
      (error) => settle(reject, error),
    );
  });
}

function sessionError(data) {
  const error = new Error(String(data?.message ?? "the session reported an error"));
  // Where it happened in the agent says more than that it was heard of here.
  if (typeof data?.stack === "string") error.stack = data.stack;
  return error;
}
