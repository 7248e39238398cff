// Deno's native classes trust their callers: a constructor that is called without `new` writes into whatever `this` is, and
// some end the process when a number is out of range. Extensions get the same classes behind a function that checks both.

import * as ops from "ext:core/ops";
import { getBinding } from "ext:deno_node/internal_binding/mod.ts";

const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys, setPrototypeOf } = Reflect;
const { isInteger } = Number;

/** The largest number of a descriptor. */
const MOST_DESCRIPTOR = 2 ** 31 - 1;

/** The most pixels of a canvas, four bytes each: 64 MB. Nothing shows a canvas here, and memory that native code cannot get
 * ends the process. */
const MOST_PIXELS = 2 ** 24;

/** The parts of node's that have native classes among their exports. */
const BINDINGS = ["async_wrap", "cares_wrap", "http_parser", "http2", "pipe_wrap", "stream_wrap", "tcp_wrap", "tty_wrap", "udp_wrap"];

function checkDescriptor(number) {
  if (!isInteger(number) || number < 0 || number > MOST_DESCRIPTOR) {
    throw new RangeError(`a descriptor is a number from 0 to ${MOST_DESCRIPTOR}`);
  }
}

/** Numbers of descriptors that are not the extension's: the native classes would take them over. */
function checkOwner(number) {
  checkDescriptor(number);
  if (ops.op_tenon_is_of_the_runtime(number)) throw new RangeError(`the descriptor ${number} is not the extension's`);
}

function checkSize(width, height) {
  if (!(width >= 0 && height >= 0 && width * height <= MOST_PIXELS)) {
    throw new RangeError(`a canvas has at most ${MOST_PIXELS} pixels`);
  }
}

/** What is looked at before an instance is made: numbers, as the class will read them. */
const CHECKS = {
  TTY: ([descriptor]) => checkOwner(descriptor),
  OffscreenCanvas: ([width, height], count) => count < 2 || checkSize(+width, +height),
};

/** What node says of a number that is no open descriptor. */
const EBADF = -9;

/** Methods that end the process, or take what is not the extension's. */
function guardMethods(classes) {
  const { TTY, OffscreenCanvas, PipeWrap, TCPWrap } = classes;
  for (const { prototype } of [PipeWrap, TCPWrap]) {
    const { open } = prototype;
    prototype.open = function (descriptor) {
      return ops.op_tenon_is_of_the_runtime(descriptor) ? EBADF : apply(open, this, [descriptor]);
    };
  }
  const { isTTY } = TTY;
  TTY.isTTY = (descriptor) => {
    checkDescriptor(descriptor);
    return isTTY(descriptor);
  };
  const sizes = OffscreenCanvas.prototype;
  for (const [side, other] of [["width", "height"], ["height", "width"]]) {
    const { get, set } = getOwnPropertyDescriptor(sizes, side);
    const another = getOwnPropertyDescriptor(sizes, other).get;
    defineProperty(sizes, side, {
      configurable: true,
      enumerable: true,
      get,
      set(value) {
        const size = +value;
        checkSize(size, apply(another, this, []));
        apply(set, this, [size]);
      },
    });
  }
}

/** A class that makes what another one makes, and cannot be called without `new`. */
function guard(name, Native) {
  const check = CHECKS[name];
  const Guarded = function (...args) {
    if (new.target === undefined) throw new TypeError(`Class constructor ${name} cannot be invoked without 'new'`);
    check?.(args, args.length);
    return construct(Native, args, new.target);
  };
  for (const key of ownKeys(Native)) {
    const property = getOwnPropertyDescriptor(Native, key);
    if (key === "prototype") property.writable = false;
    try {
      defineProperty(Guarded, key, property);
    } catch {
      // A property that every function has.
    }
  }
  defineProperty(Guarded, "prototype", { value: Native.prototype, writable: false });
  defineProperty(Native.prototype, "constructor", { value: Guarded, writable: true, enumerable: false, configurable: true });
  return Guarded;
}

/** Ops that are functions have other names. */
const isClass = /^[A-Z]/;

/** The native classes, and what extensions get in their place. */
const guards = new Map();
const byName = { __proto__: null };
for (const name in ops) {
  const Native = ops[name];
  if (!isClass.test(name) || !Native.prototype || guards.has(Native)) continue;
  byName[name] = guard(name, Native);
  guards.set(Native, byName[name]);
}
for (const [Native, Guarded] of guards) {
  const parent = guards.get(getPrototypeOf(Native));
  if (parent) setPrototypeOf(Guarded, parent);
}
guardMethods(byName);

/** Puts the guarded classes where extensions find them; Deno's own code keeps the others. */
export function guardNativeClasses() {
  for (const name of BINDINGS) {
    const binding = getBinding(name);
    for (const key of ownKeys(binding)) {
      const value = binding[key];
      if (typeof value !== "function") continue;
      if (guards.has(value)) {
        binding[key] = guards.get(value);
        continue;
      }
      // A class of node's that extends a native one.
      const parent = guards.get(getPrototypeOf(value));
      if (parent) setPrototypeOf(value, parent);
    }
  }
  for (const name of ownKeys(byName)) {
    const property = getOwnPropertyDescriptor(globalThis, name);
    if (!property?.configurable) continue;
    if (!property.get) {
      if (guards.has(property.value)) defineProperty(globalThis, name, { ...property, value: guards.get(property.value) });
      continue;
    }
    // Its file is evaluated when it is first asked for.
    const { get } = property;
    defineProperty(globalThis, name, {
      ...property,
      get() {
        const value = apply(get, this, []);
        return guards.get(value) ?? value;
      },
    });
  }
}
