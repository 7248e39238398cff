// What is tried with each agent, and how it is judged by the events that Tenon prints.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const EXTENSION = ".github/extensions/dice/extension.mjs";
const GUARD = "project:guard";
const REASON = "that file stays away";
const MINUTE_MS = 60_000;

/** A line for every expectation; what did not come true has what was seen instead. */
class Verdict {
  constructor(run) {
    this.run = run;
    this.failures = [];
  }

  expect(what, ok, seen) {
    if (!ok) this.failures.push(seen === undefined ? what : `${what}; seen: ${shorten(seen)}`);
    return this;
  }

  /** The run ended as it should, printed nothing but events, and left nothing. */
  ended(codes = [0]) {
    const { code, stderr, garbage, left } = this.run;
    this.expect(`exit code ${codes.join(" or ")}`, codes.includes(code), `${code}, stderr: ${stderr.slice(-600)}`);
    this.expect("only events are printed", garbage.length === 0, garbage[0]);
    this.expect("nothing is left running", left.length === 0, left);
    return this;
  }
}

function shorten(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === undefined || text.length <= 600 ? text : `${text.slice(0, 600)}...`;
}

/** Most agents offer the model a tool by its name. */
const simply = (tool, args) => [{ call: tool, args }];

const ofType = (events, type) => events.filter((event) => event.type === type);
const textOfResult = (event) => event?.data.result?.content ?? event?.data.error?.message ?? "";

/** The file as scaffolded, so that the model can be scripted to edit it. */
function scaffolded(stage) {
  const scratch = join(stage.root, "scratch");
  mkdirSync(join(scratch, ".git"), { recursive: true });
  const args = ["--cwd", scratch, "--home", join(scratch, "home"), "ext", "new", "dice"];
  const made = spawnSync(stage.tenon, args, { env: stage.environment, encoding: "utf8" });
  const path = join(scratch, EXTENSION);
  if (!existsSync(path)) throw new Error(`tenon ext new made no extension: ${made.stdout}${made.stderr}${made.error ?? ""}`);
  const text = readFileSync(path, "utf8");
  const tool = text.match(/^ *name: "(\w+)",$/m)?.[1];
  const line = text.match(/^ *handler: .*$/m)?.[0];
  if (!tool || !line) throw new Error(`the scaffolded extension has another shape:\n${text}`);
  return { tool, line };
}

/** The agent makes an extension, edits it, loads it and uses the new tool, all in one turn; later it goes on. */
export async function story(stage, agent, options) {
  const { tool, line } = scaffolded(stage);
  const said = `edited by ${stage.name}`;
  const edited = `${line.match(/^ */)[0]}handler: async (args) => \`\${args?.name ?? "nobody"} ${said}\`,`;
  const path = join(stage.workspace, EXTENSION);
  const ours = agent.ours ?? simply;
  const asNew = agent.dispatcher
    ? ours("call_extension_tool", { name: tool, arguments: { name: "Ada" } })
    : ours(tool, { name: "Ada" });
  const scenes = {
    story: [
      ...ours("extensions_manage", { operation: "scaffold", name: "dice" }),
      ...(agent.read ? [agent.read(path)] : []),
      agent.edit(path, line, edited),
      ...ours("extensions_reload", {}),
      ...asNew,
      { say: "The tool says: $last" },
    ],
    later: [...ours(tool, { name: "Grace" }), { say: "Again it says: $last" }],
  };
  await stage.begin({ agent, scenes, words: ["extensions_manage"], ...options });

  const run = await stage.prompt("story", "Write yourself a tool and use it. (scene: story)");
  const { events } = run;
  const verdict = new Verdict(run).ended();
  const result = events.at(-1);
  verdict.expect("the run has ended by itself", result?.data?.outcome === "ended", result);
  const turns = ofType(events, "assistant.turn_start").length;
  verdict.expect("there is one turn", turns === 1 && ofType(events, "user.message").length === 1, turns);
  const completed = ofType(events, "tool.execution_complete");
  const of = (name) => completed.find((event) => event.data.toolName === name);
  const succeeded = (name) => {
    verdict.expect(`${name} succeeds`, of(name)?.data.success === true, of(name)?.data ?? completed.map((it) => it.data.toolName));
  };
  const told = stage.requests("story")[0];
  verdict.expect("the model is told of our tools at once", told?.heard.length === 1, told?.tools ?? "no request");
  succeeded("extensions_manage");
  const edit = ofType(events, "tool.execution_start").find(
    ({ data }) => ["edit", "create"].includes(data.toolName) && String(data.arguments?.path).endsWith(EXTENSION),
  );
  const started = ofType(events, "tool.execution_start").map(({ data }) => [data.toolName, data.arguments]);
  verdict.expect("the agent's own edit is told as `edit`", edit !== undefined, started);
  verdict.expect("with the agent's own name for it", edit === undefined || edit.data.nativeToolName !== undefined, edit?.data);
  const onDisk = existsSync(path) ? readFileSync(path, "utf8") : "no file";
  verdict.expect("the file is edited", onDisk.includes(edited), onDisk);
  succeeded("extensions_reload");
  succeeded(tool);
  verdict.expect("the new tool answers", textOfResult(of(tool)).includes(`Ada ${said}`), of(tool)?.data);
  const answer = ofType(events, "assistant.message").map((event) => event.data.content).join("\n");
  verdict.expect("its result reaches the model in the same turn", answer.includes(`Ada ${said}`), answer);
  const warnings = ofType(events, "session.warning").map((event) => event.data.message);

  if (agent.nextMinute) await pause(MINUTE_MS - (Date.now() % MINUTE_MS));
  const later = await resume(stage, { tool, edited: said, id: result?.data?.sessionId });
  return { story: verdict.failures, seconds: run.seconds, warnings, later };
}

/** Another prompt to the same session, in another process. */
async function resume(stage, { tool, edited, id }) {
  if (!id) return ["there is no session to go on with"];
  const run = await stage.prompt("later", "Use it again. (scene: later)", ["--resume", id]);
  const verdict = new Verdict(run).ended();
  const result = run.events.at(-1);
  verdict.expect("it is the same session", result?.data?.sessionId === id, result);
  const lost = ofType(run.events, "session.warning").find((event) => event.data.warningType === "agent_session_lost");
  verdict.expect("the agent knows its session", lost === undefined, lost?.data.message);
  const call = ofType(run.events, "tool.execution_complete").find((event) => event.data.toolName === tool);
  verdict.expect("the tool answers", textOfResult(call).includes(`Grace ${edited}`), call?.data ?? run.events.length);
  const again = ofType(run.events, "tool.execution_start")
    .map((event) => event.data.toolName)
    .filter((name) => ["extensions_manage", "extensions_reload", "view", "edit", "create"].includes(name));
  verdict.expect("nothing of the first turn happens again", again.length === 0, again);
  const said = ofType(run.events, "assistant.message").map((event) => event.data.content);
  verdict.expect("and nothing is said again", !said.some((text) => text.includes("The tool says")), said);
  const first = stage.requests("later")[0];
  verdict.expect("the agent remembers the first prompt", first?.earlier.includes("story"), first ?? "no request");
  return verdict.failures;
}

/** An extension that was written for Copilot's `bash` denies a command of the agent's own shell. */
export async function guard(stage, agent, options) {
  stage.file(
    ".github/extensions/guard/extension.mjs",
    `import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onPreToolUse: ({ toolName, toolArgs }) => {
      if (toolName === "bash" && /forbidden/.test(toolArgs.command)) {
        return { permissionDecision: "deny", permissionDecisionReason: "${REASON}" };
      }
    },
  },
});
session.on("session.info", ({ data }) => {
  if (data.infoType === "denied") void session.send({ prompt: "What have you made? (scene: next)" });
});
`,
  );
  const scenes = {
    guard: [
      agent.shell("touch allowed.txt"),
      agent.shell("touch forbidden.txt"),
      { say: "The last tool said: $last" },
    ],
    next: [{ say: "One file." }],
  };
  await stage.begin({ agent, scenes, words: [GUARD, REASON], ...options });
  const run = await stage.prompt("guard", "Make two files. (scene: guard)");
  const { events } = run;
  const there = (name) => existsSync(join(stage.workspace, name));
  // Some agents give up the turn when something is not permitted.
  const verdict = new Verdict(run).ended([0, 3]);
  const permissions = ofType(events, "permission.requested").map((event) => event.data.permissionRequest);
  verdict.expect("what the guard allows is done", there("allowed.txt"), {
    permissions,
    result: events.at(-1),
    said: ofType(events, "assistant.message").map((event) => event.data.content),
  });
  const made = ofType(events, "tool.execution_complete").find((event) => event.data.toolName === "bash");
  verdict.expect("its result is not what was said before it", !textOfResult(made).includes("make a file"), made?.data);
  const ignored = ofType(events, "session.warning").find((event) => event.data.warningType === "denial_without_effect");
  if (ignored && there("forbidden.txt")) {
    return { guard: [`the agent did not ask: ${ignored.data.message}`], asks: false, seconds: run.seconds };
  }
  verdict.expect("the agent asks before it uses its shell", permissions.some((request) => request.kind === "shell"), permissions);
  verdict.expect("what the guard denies is not done", !there("forbidden.txt"), "forbidden.txt");
  const denied = ofType(events, "tool.execution_complete").find((event) => textOfResult(event).includes(GUARD));
  verdict.expect("the call is told as denied, with the extension's name", denied?.data.success === false, {
    completed: ofType(events, "tool.execution_complete").map((event) => event.data),
  });
  const told = ofType(events, "session.info").find((event) => event.data.extensionId === GUARD);
  verdict.expect("the person is told who denied it and why", told?.data.message.includes(REASON), told?.data);
  const next = stage.requests("next")[0];
  verdict.expect("with the next message the model is told so too", next?.heard.length === 2, next?.heard ?? "no request");
  const asked = stage.requests("guard").filter((request) => request.step === 2);
  const goesOn = ofType(events, "assistant.message").some((event) => event.data.content.startsWith("The last tool said"));
  const reason = events.at(-1)?.data?.stopReason ?? events.at(-1)?.data?.outcome;
  return {
    guard: verdict.failures,
    asks: true,
    afterwards: goesOn ? "goes on" : `ends (${reason})`,
    modelIsTold: goesOn ? asked[0]?.last : undefined,
    seconds: run.seconds,
  };
}

/** Tenon is killed while the agent runs a command: nothing may be left of either. */
export async function killed(stage, agent, options) {
  const scenes = { killed: [agent.shell("touch started.txt; sleep 1000"), { say: "It has ended." }] };
  await stage.begin({ agent, scenes, ...options });
  const started = join(stage.workspace, "started.txt");
  const run = await stage.prompt("killed", "Take your time. (scene: killed)", [], () => existsSync(started));
  const verdict = new Verdict(run).ended(["SIGKILL"]);
  return { killed: verdict.failures };
}

/** A client of another maker uses `tenon acp`, with an agent behind it. */
export async function behindAcpx(stage, agent, { acpx, ...options }) {
  stage.file(
    ".github/extensions/answer/extension.mjs",
    `import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "the_answer", description: "Says the answer", handler: () => "forty-two, by an extension" }],
});
`,
  );
  const scenes = { acpx: [...(agent.ours ?? simply)("the_answer", {}), { say: "It is $last" }] };
  await stage.begin({ agent, scenes, ...options, mode: agent.clientMode });
  const prompt = stage.name === "demo" ? "@call the_answer {}\n@say It is $last" : "What is the answer? (scene: acpx)";
  const host = `'${stage.tenon}' acp --agent ${stage.name} --trust`;
  const args = ["--agent", host, "--cwd", stage.workspace, "--approve-all", "--timeout", "120", "exec", prompt];
  const run = await stage.run("acpx", acpx, args);
  const verdict = new Verdict({ ...run, garbage: [] }).ended();
  verdict.expect("the client shows the answer", /It is[^]*forty-two, by an extension/.test(run.stdout), run.stdout);
  return { acpx: verdict.failures, seconds: run.seconds };
}
