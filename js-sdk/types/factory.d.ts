/**
 * Factories: durable workflows, experimental in the contract.
 *
 * Tenon takes their declaration and does not run them: every member of `session.factory` rejects. The
 * types are here so that an extension written for both hosts can be checked.
 */

import type { ContextTier, CopilotSession } from "./session.js";
import type { HostAbortSignal, JsonValue } from "./tools.js";

// Declaring -------------------------------------------------------------------------------------

/** A small part of JSON Schema: types, required members, enumerations and their nesting. */
export type FactoryJsonSchema = { [key: string]: JsonValue };

/** What a run may use at most. A missing limit is the host's own. */
export interface FactoryLimits {
  maxConcurrentSubagents?: number;
  maxTotalSubagents?: number;
  maxAiCredits?: number;
  timeoutSeconds?: number;
}

/** Limits for one run: `null` lifts one. */
export type FactoryLimitOverrides = { [Limit in keyof FactoryLimits]: FactoryLimits[Limit] | null };

export interface FactoryMeta {
  name: string;
  description: string;
  /** The steps that a person is shown. */
  phases: Array<{ title: string; detail?: string }>;
  argsSchema?: FactoryJsonSchema;
  limits?: FactoryLimits;
}

export interface FactoryAgentOptions {
  label?: string;
  /** What the agent's answer must look like. */
  schema?: FactoryJsonSchema;
  model?: string;
  reasoningEffort?: string;
  contextTier?: ContextTier;
  agent?: string;
}

/** `volatile` runs the step every time, also when its result is known. */
export interface FactoryStepOptions { volatile?: boolean }

export type FactoryPipelineStage<TInput = any, TResult = unknown> = (
  previous: TInput,
  item: unknown,
  index: number,
) => Promise<TResult> | TResult;

/** What a factory's body works with. */
export interface FactoryContext<TArgs extends JsonValue = JsonValue> {
  readonly runId: string;
  args: TArgs;
  session: CopilotSession;
  signal: HostAbortSignal;
  agent(prompt: string, options?: FactoryAgentOptions): Promise<unknown>;
  step(key: string, producer: () => Promise<JsonValue> | JsonValue, options?: FactoryStepOptions): Promise<JsonValue>;
  parallel<T>(thunks: Array<() => Promise<T> | T>): Promise<Array<T | null>>;
  pipeline(items: unknown[], ...stages: FactoryPipelineStage[]): Promise<unknown[]>;
  factory(name: string, args?: JsonValue): Promise<JsonValue | void>;
  pause(key: string): Promise<void>;
  phase(title: string): void;
  log(message: string): void;
}

export interface FactoryDefinition<TArgs extends JsonValue = JsonValue, TResult extends JsonValue | void = JsonValue | void> {
  meta: FactoryMeta;
  run(context: FactoryContext<TArgs>): Promise<TResult>;
}

type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** Made by {@link defineFactory}, given to `joinSession({ factories })`. */
export interface FactoryHandle<TArgs extends JsonValue = JsonValue, TResult extends JsonValue | void = JsonValue | void> {
  readonly meta: DeepReadonly<FactoryMeta>;
  /** Never there: it carries the types along. */
  readonly types?: { args: TArgs; result: TResult };
}

export declare function defineFactory<TArgs extends JsonValue = JsonValue, TResult extends JsonValue | void = JsonValue | void>(
  definition: FactoryDefinition<TArgs, TResult>,
): FactoryHandle<TArgs, TResult>;

// Running ---------------------------------------------------------------------------------------

export type FactoryRunStatus = "pending" | "running" | "completed" | "halted" | "paused" | "cancelled" | "error";

/** Whether a run's current attempt has ended. */
export declare function isFactoryRunTerminal(status: FactoryRunStatus): boolean;

export interface ResumeOptions { limits?: FactoryLimitOverrides; notifyOnComplete?: boolean; logPhaseNames?: boolean }

export interface RunOptions<TArgs extends JsonValue = JsonValue> extends ResumeOptions {
  args?: TArgs;
  /** @deprecated Use {@link SessionFactoryApi.resume}. */
  resumeFromRunId?: string;
}

export type FactoryResumeErrorCode =
  | "not_found" | "non_resumable" | "already_active" | "factory_already_running" | "factory_limits_invalid"
  | "factory_session_disposed" | "factory_storage_unavailable" | "factory_storage_corrupt";

export declare class FactoryResumeError extends Error {
  constructor(code: FactoryResumeErrorCode, message: string);
  readonly code: FactoryResumeErrorCode;
}

export interface FactoryRunResult {
  runId: string;
  status: FactoryRunStatus;
  attempt?: number;
  result?: JsonValue;
  error?: string;
  reason?: string;
  snapshot?: JsonValue;
  failure?: { type: string; runId: string; [key: string]: any };
  pauseInfo?: { [key: string]: any };
}

/** Times are Unix milliseconds. */
export interface FactoryRunSummary {
  runId: string;
  factoryName: string;
  description: string;
  status: FactoryRunStatus;
  revision: number;
  createdAt: number;
  startedAt: number | null;
  updatedAt: number;
  completedAt: number | null;
  observedAt: number;
  activeSegmentStartedAt: number | null;
  currentPhase: { [key: string]: any } | null;
  declaredPhaseCount: number;
  liveAgentCount: number;
  totalSpawnedAgentCount: number;
  consumed: { [key: string]: any };
  declaredLimits: FactoryLimits;
  approved: FactoryLimits | null;
  terminal: { [key: string]: any } | null;
  canResume: boolean;
}

/** Both bounds are exclusive. */
export interface FactoryListRunsOptions { afterSeq?: number; beforeSeq?: number; limit?: number }
export interface FactoryRunsPage { runs: FactoryRunSummary[]; oldestSeq?: number | null; newestSeq?: number | null; hasMoreNewer?: boolean; omittedOlder?: number }

export type FactoryPhaseStatus = "pending" | "active" | "completed" | "skipped";

export interface FactoryPhaseObservation {
  id: string;
  ordinal: number | null;
  title: string;
  detail?: string;
  status: FactoryPhaseStatus;
  lastEnteredRunAttempt: number;
  entryCount: number;
  startedAt?: number;
  completedAt?: number;
  accumulatedActiveMs: number;
  currentActiveMs: number;
  totalAgentCount: number;
  liveAgentCount: number;
}

export interface FactoryAgentSummary {
  agentId: string;
  toolCallId: string;
  runId: string;
  phaseId: string | null;
  label: string;
  displayName?: string;
  agentType: string;
  status: string;
  requestedModel?: string;
  resolvedModel?: string;
  startedAt?: number;
  completedAt?: number;
  activeMs: number;
  activity?: string;
}

export interface FactoryProgressLine { seq: number; attempt: number; phaseId: string | null; recordedAt: number; kind: "phase" | "log"; text: string }
export interface FactoryProgressPage { records: FactoryProgressLine[]; oldestSeq: number | null; newestSeq: number | null; hasMoreOlder: boolean; hasMoreNewer: boolean; revision: number }

export interface FactoryRunDetail extends FactoryRunSummary {
  phases: FactoryPhaseObservation[];
  [key: string]: any;
}

/** Runs of factories. Every member rejects: no host of Tenon's serves it. */
export interface SessionFactoryApi {
  run(name: string, options?: RunOptions): Promise<FactoryRunResult>;
  run<TArgs extends JsonValue>(factory: FactoryHandle<TArgs, JsonValue | void>, options?: RunOptions<TArgs>): Promise<FactoryRunResult>;
  resume(runId: string, options?: ResumeOptions): Promise<FactoryRunResult>;
  getRun(runId: string): Promise<FactoryRunResult>;
  waitForRun(runId: string, options?: { signal?: HostAbortSignal }): Promise<FactoryRunResult>;
  listRuns(): Promise<FactoryRunSummary[]>;
  listRuns(options: FactoryListRunsOptions): Promise<FactoryRunsPage>;
  getRunDetail(runId: string): Promise<FactoryRunDetail>;
  getRunProgress(runId: string, options?: FactoryListRunsOptions & { phaseId?: string }): Promise<FactoryProgressPage>;
  pause(runId: string): Promise<FactoryRunResult>;
  cancel(runId: string): Promise<FactoryRunResult>;
}

export {};
