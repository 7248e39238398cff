// Low-level calls: every name of the contract's is a request to the host, which refuses by name what
// it does not serve. So nothing has to be listed here, and nothing is missing or hangs.

/** Names that the language itself asks for; a call would be made by accident. */
const NOT_METHODS = new Set(["then", "toJSON", "toString", "valueOf", "constructor"]);

/** `session.rpc.a.b(params)` asks for the method `rpc.a.b`, whatever the names are. */
export function rpcNamespace(ask, path = "rpc") {
  const members = new Map();
  return new Proxy(() => {}, {
    get(_target, name) {
      if (typeof name === "symbol" || NOT_METHODS.has(name)) return undefined;
      let member = members.get(name);
      if (!member) {
        member = rpcNamespace(ask, `${path}.${name}`);
        members.set(name, member);
      }
      return member;
    },
    apply: (_target, _this, [params]) => ask(path, params ?? {}),
  });
}

/** The original's connection is private, and some extensions use it all the same. */
export function rpcConnection(ask) {
  return Object.freeze({
    sendRequest(method, params) {
      // The session is this one, whatever is said; our requests do not name it.
      const { sessionId: _sessionId, ...rest } = params ?? {};
      return ask(`rpc.${String(method).replace(/^session\./, "")}`, rest);
    },
  });
}
