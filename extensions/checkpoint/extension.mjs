// checkpoint: keeps the state of all files after every turn that changed some, and brings any of
// them back. Stored as commits under refs/tenon/checkpoints, outside of every branch: the history,
// the index and the files are never touched by taking one. Number 0 is the state at the beginning.

import { joinSession } from "@github/copilot-sdk/extension";
import { NoRepository, findRepository, list, restore, snapshot } from "./git.mjs";

const MAX_TITLE = 120;
const START = "start of session";
const START_WAIT_MS = 2_000;
const END_WAIT_MS = 10_000;

/** @type {import("@github/copilot-sdk").CopilotSession} */
let session;
let folder = process.cwd();
let prompt = "";
let restored = ""; // what the agent has to be told with the next prompt
let quiet = false; // the reason why there are no checkpoints was given
/** @type {Promise<unknown>} */
let queue = Promise.resolve();

/** @param {string} text */
const failure = (text) => ({ textResultForLlm: text, resultType: "failure" });
/** @param {string} text */
const firstLine = (text) => (text.trim().split("\n")[0] ?? "").trim().slice(0, MAX_TITLE);
/** @param {Promise<unknown>} promise @param {number} ms */
const within = (promise, ms) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms).unref?.())]);

/**
 * One at a time: a restore must not meet a snapshot half way.
 * @template Result
 * @param {() => Promise<Result>} work
 */
function inTurn(work) {
  const result = queue.then(work);
  queue = result.catch(() => {});
  return result;
}

/**
 * Never throws: a checkpoint that cannot be made must not disturb the turn.
 * @param {string} title
 */
function takeCheckpoint(title) {
  return inTurn(async () => {
    try {
      const repository = await findRepository(folder);
      quiet = false;
      if (title === START && (await list(repository, session.sessionId)).length > 0) return; // loaded again
      await snapshot(repository, session.sessionId, title || "(no prompt)");
    } catch (/** @type {any} */ error) {
      if (quiet) return;
      quiet = true;
      const level = error instanceof NoRepository ? "info" : "warning";
      await session.log(`checkpoint: no checkpoints are made: ${error.message}`, { level }).catch(() => {});
    }
  });
}

const turnEnded = () => takeCheckpoint(firstLine(prompt));

async function describeCheckpoints() {
  const all = await inTurn(async () => list(await findRepository(folder), session.sessionId));
  if (all.length === 0) return "No checkpoints yet.";
  const width = String(all[all.length - 1].number).length;
  return all
    .map(({ number, time, title, files }) => `${String(number).padStart(width)}  ${stamp(time)}  ${files} ${files === 1 ? "file" : "files"}  ${title}`)
    .join("\n");
}

/** @param {Date} time */
function stamp(time) {
  /** @param {number} value */
  const two = (value) => String(value).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** @param {unknown} given */
async function restoreCheckpoint(given) {
  const text = String(given ?? "").trim().replace(/^#/, "");
  if (!/^\d{1,9}$/.test(text)) throw new RangeError(`"${text}" is not the number of a checkpoint. /checkpoints lists them.`);
  const { saved, files, target } = await inTurn(async () => restore(await findRepository(folder), session.sessionId, Number(text)));
  const undo = saved ? ` The state before is checkpoint ${saved.number}.` : "";
  return `Restored checkpoint ${target.number} (${target.title}): ${files} ${files === 1 ? "file" : "files"} changed.${undo}`;
}

session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async (input) => {
      folder = input.workingDirectory ?? input.cwd ?? folder;
      prompt = input.prompt ?? "";
      await within(queue, START_WAIT_MS); // the first state should be stored before it changes
      if (!restored) return;
      const additionalContext = restored;
      restored = "";
      return { additionalContext };
    },
    // Not awaited here and below: the turn does not wait. A second call finds nothing new.
    onAgentStop: () => {
      turnEnded();
    },
    onSessionEnd: async () => {
      await within(queue, END_WAIT_MS);
    },
  },
  commands: [
    {
      name: "checkpoints",
      description: "Lists the checkpoints of this session",
      handler: async () => {
        try {
          await session.log(await describeCheckpoints());
        } catch (/** @type {any} */ error) {
          await session.log(`checkpoint: ${error.message}`, { level: "warning" });
        }
      },
    },
    {
      name: "restore",
      description: "Brings all files back to a checkpoint: /restore <number>",
      handler: async ({ args }) => {
        try {
          const text = await restoreCheckpoint(args);
          restored = `The person has changed the files: ${text} Read files again before you edit them.`;
          await session.log(text);
        } catch (/** @type {any} */ error) {
          await session.log(`checkpoint: nothing was restored: ${error.message}`, { level: "error" });
        }
      },
    },
  ],
  tools: [
    {
      name: "checkpoint_list",
      description: "Lists the checkpoints of this session: number, time, files changed, and the prompt that led to it.",
      parameters: { type: "object", properties: {} },
      skipPermission: true,
      handler: () => describeCheckpoints().catch((error) => failure(`No checkpoints: ${error.message}`)),
    },
    {
      name: "checkpoint_restore",
      description: "Brings all files of the repository, but for ignored ones, back to a checkpoint. The present state is stored as a checkpoint first.",
      parameters: {
        type: "object",
        properties: { number: { type: "integer", minimum: 0, description: "Number from checkpoint_list" } },
        required: ["number"],
      },
      handler: (args) => restoreCheckpoint(args?.number).catch((error) => failure(`Nothing was restored: ${error.message}`)),
    },
  ],
});

takeCheckpoint(START);
session.on("user.message", ({ data }) => {
  if (data?.content && (data.source === undefined || data.source === "user")) prompt = data.content;
});
session.on("session.idle", () => {
  turnEnded();
});
