// guard: stops shell commands that are hard to undo before they run. Shows a permission hook with
// a reason, a prompt hook that tells the agent the rules beforehand, and a slash command.
//
// This catches accidents. It is no sandbox: a shell has endless ways to spell a command.
// Try it:  in a session, /guard test rm -rf /

import { joinSession } from "@github/copilot-sdk/extension";

const SHELL_TOOLS = new Set(["bash", "powershell", "shell"]);

// Start of a command: line start or after ; & | ( and the like, with sudo, env and VAR=x skipped.
const START = String.raw`(?:^|[;&|(\n{]|\bthen\b|\bdo\b)\s*(?:(?:sudo|doas|env|command|exec|nohup|time)\s+(?:-\S+\s+)*|\w+=\S*\s+)*`;
/** @param {string} pattern @param {string} reason */
const rule = (pattern, reason) => ({ pattern: new RegExp(START + pattern), reason });

// Narrow on purpose. A guard that also blocks "rm -rf node_modules" is switched off within a day.
/** @type {{ pattern: RegExp, reason: string, matches?: (argumentsText: string) => boolean }[]} */
const RULES = [
  {
    pattern: new RegExp(String.raw`${START}(?:\S*/)?rm\s+([^;&|\n]*)`, "g"),
    reason: "it deletes the file system, the home folder, or everything in or above the current folder",
    // Recursive, and aimed at something that is never a build product.
    matches: (argumentsText) => {
      const words = argumentsText.trim().split(/\s+/).map((word) => word.replace(/["']/g, ""));
      const recursive = words.some((word) => /^-[a-zA-Z]*[rR]|^--recursive$/.test(word));
      const target = /^(?:\/|\/\*|~|~\/\*?|\$\{?HOME\}?(?:\/\*?)?|\.|\.\/\*?|\.\.(?:\/.*)?|\*|\/(?:bin|boot|dev|etc|home|lib|opt|root|sbin|srv|sys|usr|var)(?:\/\*?)?)$/;
      return recursive && words.some((word) => target.test(word));
    },
  },
  rule(String.raw`git\s+(?:-\S+\s+)*push\b[^;&|\n]*\s(?:--force(?![-\w])|-[a-zA-Z]*f\b|\+\S)`, "it overwrites the history of a remote branch (--force-with-lease is allowed)"),
  rule(String.raw`git\s+(?:-\S+\s+)*clean\b[^;&|\n]*\s-[a-zA-Z]*[xX]`, "it deletes ignored files, among them local settings and secrets"),
  rule(String.raw`(?:curl|wget)\b[^;&\n]*\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|da|z|k)?sh\b`, "it runs a script straight from the network"),
  rule(String.raw`(?:\S*/)?(?:mkfs(?:\.\w+)?|wipefs|fdisk|parted)\s`, "it changes a disk's partitions or file system"),
  rule(String.raw`dd\b[^;&|\n]*\bof=/dev/(?!null\b)`, "it writes straight to a device"),
  rule(String.raw`(?:\S*/)?(?:shutdown|reboot|halt|poweroff)\b`, "it stops the machine"),
  rule(String.raw`ch(?:mod|own)\s+(?=[^;&|\n]*-[a-zA-Z]*R)[^;&|\n]*\s/(?:\s|$)`, "it changes the rights of the whole file system"),
  { pattern: /:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:/, reason: "it is a fork bomb" },
  { pattern: /\bRemove-Item\b(?=[^;|\n]*-Recurse)[^;|\n]*\s(?:[A-Za-z]:\\?|~|\$HOME|\\|\*)(?:\s|$)/i, reason: "it deletes a whole drive or the home folder" },
];

// The reason why a command is dangerous, or null.
/** @param {string} command */
function danger(command) {
  for (const { pattern, reason, matches } of RULES) {
    const hit = matches
      ? [...command.matchAll(pattern)].some((found) => matches(found[1]))
      : pattern.test(command);
    if (hit) return reason;
  }
  return null;
}

let enabled = true; // per load: a reload switches the guard on again, which is the safe side
let blocked = 0;

/** @param {any} toolArgs */
function commandOf(toolArgs) {
  let args = toolArgs;
  if (typeof args === "string") {
    // Some hosts pass the arguments as JSON text, some the bare command.
    try {
      args = JSON.parse(args);
    } catch {
      return args;
    }
  }
  return typeof args?.command === "string" ? args.command : "";
}

const session = await joinSession({
  hooks: {
    onPreToolUse: async (input) => {
      if (!enabled || !SHELL_TOOLS.has(input.toolName)) return;
      const reason = danger(commandOf(input.toolArgs));
      // No opinion on everything else. "allow" would skip the question that the person may
      // want to be asked; a guard only ever takes rights away.
      if (!reason) return;
      blocked += 1;
      return {
        permissionDecision: "deny",
        permissionDecisionReason: `guard: this command is blocked because ${reason}. Ask the user to run it by hand if it is really wanted.`,
      };
    },
    // Knowing the rules beforehand saves the agent a failed attempt. Only when the prompt is about
    // such things: context that comes with every prompt is paid for with every prompt.
    onUserPromptSubmitted: async (input) => {
      if (!enabled || !/\b(delete|remove|clean|wipe|reset|force|push|install|disk|purge)\b/i.test(input.prompt)) return;
      return {
        additionalContext:
          "A guard is active: recursive deletes of root, home or the current folder, force pushes, git clean -x, " +
          "piping downloads into a shell, and commands on disks are denied. Prefer narrow, reversible commands.",
      };
    },
  },
  commands: [
    {
      name: "guard", // typed as /guard
      description: "Shows the guard, switches it (on, off), or tries a command on it (test <command>)",
      handler: async (context) => {
        const [verb = "", ...rest] = context.args.trim().split(/\s+/);
        if (verb === "on" || verb === "off") enabled = verb === "on";
        if (verb === "test") {
          const command = rest.join(" ");
          const reason = danger(command);
          return void (await session.log(reason ? `guard would block "${command}": ${reason}` : `guard would let "${command}" pass`));
        }
        if (verb && verb !== "on" && verb !== "off") {
          return void (await session.log(`/guard: unknown word "${verb}". Use on, off or test <command>.`, { level: "warning" }));
        }
        await session.log(`guard is ${enabled ? "on" : "off"}, ${RULES.length} rules, ${blocked} commands blocked`);
      },
    },
  ],
});
