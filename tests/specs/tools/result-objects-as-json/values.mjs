import { joinSession } from "@github/copilot-sdk/extension";

class Point {
  #hidden = 1;
  x = 1;
  get y() {
    return this.#hidden;
  }
}

const values = {
  date: () => new Date(0),
  map: () => new Map([["a", 1]]),
  undefined_inside: () => ({ a: undefined, b: [undefined, () => {}, NaN], c: { d: Symbol("s") } }),
  own_json: () => ({ secret: 1, toJSON: () => ({ shown: 2 }) }),
  null_json: () => ({ toJSON: () => null }),
  class: () => new Point(),
  empty: () => ({}),
  error: () => Object.assign(new Error("returned, not thrown"), { code: 7 }),
};

await joinSession({ tools: Object.entries(values).map(([name, handler]) => ({ name, handler })) });
