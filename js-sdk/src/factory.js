// Factories: durable workflows of the original's own. They can be declared here and are not run, so
// every request about a run goes to the host, which says that it does not serve it.

/** An opaque reference to a factory. */
export function defineFactory(definition) {
  if (typeof definition?.meta?.name !== "string" || definition.meta.name === "") {
    throw new TypeError("defineFactory: `meta.name` must be a non-empty string");
  }
  return Object.freeze({ meta: freeze(JSON.parse(JSON.stringify(definition.meta))) });
}

function freeze(value) {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}

/** Why a run could not go on. */
export class FactoryResumeError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "FactoryResumeError";
    this.code = code;
  }
}

/** States in which a run's current attempt has ended. A paused run may be resumed as a new one. */
const TERMINAL_RUN_STATES = new Set(["completed", "halted", "paused", "cancelled", "error"]);

export function isFactoryRunTerminal(status) {
  return TERMINAL_RUN_STATES.has(status);
}

/** `session.factory`, in terms of `session.rpc.factory`. */
export function factoryApi({ factory }) {
  return Object.freeze({
    run: (nameOrHandle, { args, ...options } = {}) =>
      factory.run({ name: typeof nameOrHandle === "string" ? nameOrHandle : nameOrHandle?.meta?.name, args: args ?? {}, options }),
    resume: (runId, options) => factory.resume({ ...options, runId }),
    getRun: (runId) => factory.getRun({ runId }),
    waitForRun: (runId) => factory.waitForRun({ runId }),
    listRuns: (options) => factory.listRuns(options),
    getRunDetail: (runId) => factory.getRunDetail({ runId }),
    getRunProgress: (runId, options) => factory.getRunProgress({ ...options, runId }),
    pause: (runId) => factory.pause({ runId }),
    cancel: (runId) => factory.cancel({ runId }),
  });
}
