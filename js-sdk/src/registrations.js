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

/** What was in place before, until the host has agreed to what replaces it. */
let fallback = NOTHING;

/** The handlers of one kind, by name. */
export function registered(kind) {
  if (fallback === NOTHING) return current[kind];
  return new Map([...fallback[kind], ...current[kind]]);
}

/** Puts registrations in place; returns those before them, and how to go back. */
export function register(next) {
  const before = current;
  current = { ...NOTHING, ...next };
  fallback = before;
  const mine = current;
  return {
    before: before === NOTHING ? undefined : before,
    agree() {
      if (current === mine) fallback = NOTHING;
    },
    takeBack() {
      // A later join may have taken over meanwhile; what it registered is not ours to remove.
      if (current !== mine) return;
      current = before;
      fallback = NOTHING;
    },
  };
}

/** From now on nothing is registered. */
export function unregisterAll() {
  current = NOTHING;
  fallback = NOTHING;
}
