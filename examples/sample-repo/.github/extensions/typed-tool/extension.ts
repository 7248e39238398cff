// typed-tool: an extension in TypeScript. Tenon removes the types and runs the rest, so there is no
// build step, and errors point at the lines below. Copilot CLI itself does not load .ts entry files.
//
// Try it:  tenon call compare_versions --args '{"left":"1.10.0","right":"1.9.2"}'

import { joinSession } from "@github/copilot-sdk/extension";
// "import type" leaves no import behind at run time.
import type { Tool, ToolInvocation, ToolResultObject } from "@github/copilot-sdk";

interface Version {
  readonly core: readonly [major: number, minor: number, patch: number];
  readonly pre: readonly string[];
}

// What an enum would be elsewhere: a constant array, and a type made from it.
const PARTS = ["major", "minor", "patch"] as const;
type Part = (typeof PARTS)[number];

interface CompareArgs {
  left: string;
  right: string;
}

interface BumpArgs {
  version: string;
  part?: Part;
}

const PATTERN: RegExp = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

function parse(text: unknown): Version {
  const match = typeof text === "string" ? PATTERN.exec(text.trim()) : null;
  if (match === null) throw new RangeError(`Not a semantic version: ${JSON.stringify(text)}`);
  const [, major, minor, patch, pre] = match;
  return { core: [Number(major), Number(minor), Number(patch)], pre: pre?.split(".") ?? [] };
}

function compareIdentifiers(a: string, b: string): number {
  const numeric = (text: string): boolean => /^\d+$/.test(text);
  if (numeric(a) && numeric(b)) return Math.sign(Number(a) - Number(b));
  if (numeric(a) !== numeric(b)) return numeric(a) ? -1 : 1; // numbers sort before words
  return a === b ? 0 : a < b ? -1 : 1;
}

// The order of semver.org, section 11.
function compare(a: Version, b: Version): number {
  for (let i = 0; i < 3; i += 1) {
    const difference = a.core[i]! - b.core[i]!;
    if (difference !== 0) return Math.sign(difference);
  }
  // A pre-release comes before its release, so an empty list is the greater one.
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length);
  for (let i = 0; i < Math.min(a.pre.length, b.pre.length); i += 1) {
    const difference = compareIdentifiers(a.pre[i]!, b.pre[i]!);
    if (difference !== 0) return difference;
  }
  return Math.sign(a.pre.length - b.pre.length);
}

function bump({ core: [major, minor, patch], pre }: Version, part: Part): string {
  if (part === "major") return `${major + 1}.0.0`;
  if (part === "minor") return `${major}.${minor + 1}.0`;
  // 1.2.3-beta.1 becomes 1.2.3: the release it was leading up to.
  return `${major}.${minor}.${pre.length > 0 ? patch : patch + 1}`;
}

// Wraps a handler so that bad input becomes a result the model can read, in one place.
function guarded<Args>(work: (args: Args) => string) {
  return async (args: Args, _invocation: ToolInvocation): Promise<string | ToolResultObject> => {
    try {
      return work(args);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { textResultForLlm: error.message, resultType: "failure" } satisfies ToolResultObject;
    }
  };
}

const compareVersions: Tool<CompareArgs> = {
  name: "compare_versions",
  description: "Compares two semantic versions and says which one is newer.",
  parameters: {
    type: "object",
    properties: {
      left: { type: "string", description: "For example 1.10.0" },
      right: { type: "string", description: "For example 1.9.2-rc.1" },
    },
    required: ["left", "right"],
  },
  handler: guarded<CompareArgs>(({ left, right }) => {
    const order = compare(parse(left), parse(right));
    const words = order === 0 ? "equals" : order < 0 ? "is older than" : "is newer than";
    return `${left} ${words} ${right}`;
  }),
};

const bumpVersion: Tool<BumpArgs> = {
  name: "bump_version",
  description: "Returns the next semantic version after raising one part.",
  parameters: {
    type: "object",
    properties: {
      version: { type: "string", description: "For example 1.2.3" },
      part: { type: "string", enum: [...PARTS], description: "Default patch" },
    },
    required: ["version"],
  },
  handler: guarded<BumpArgs>(({ version, part = "patch" }) => {
    if (!PARTS.includes(part)) throw new RangeError(`Unknown part "${part}". Use one of: ${PARTS.join(", ")}.`);
    return bump(parse(version), part);
  }),
};

await joinSession({ tools: [compareVersions, bumpVersion] });
