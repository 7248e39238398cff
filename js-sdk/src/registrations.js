// What the extension has registered with `joinSession`: calls from the host find their handlers here.
//
// All of it changes at once. A join that fails must leave nothing behind, and a second one replaces
// everything that the first brought.

const NOTHING = {
  tools: new Map(),
  hooks: new Map(),
  commands: new Map(),
  canvases: new Map(),
  handlers: new Map(),
  onEvent: undefined,
};

let current = NOTHING;

/** The handlers of one kind, by name. */
export function registered(kind) {
  return current[kind];
}

/** Puts registrations in place; returns those before them, and how to go back. */
export function register(next) {
  const before = current;
  current = { ...NOTHING, ...next };
  const mine = current;
  return {
    before: before === NOTHING ? undefined : before,
    takeBack() {
      // A later join may have taken over meanwhile; what it registered is not ours to remove.
      if (current === mine) current = before;
    },
  };
}

/** From now on nothing is registered. */
export function unregisterAll() {
  current = NOTHING;
}
