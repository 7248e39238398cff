// Session events: who wants to hear of them, and handing them out.
//
// A busy agent makes thousands of events a second, so the list of handlers for a type is put together
// once and kept until a subscription changes; an event itself costs its share of one `JSON.parse`.

import { logError, request } from "ext:tenon/bridge.js";

/** The type that stands for all events. */
export const ALL = "*";

/** Type to its subscriptions, in order. A type without any is not in the map. */
const subscriptions = new Map();

/** Type to the subscriptions that hear of it: its own and those to all events. */
const audiences = new Map();

let lastNumber = 0;

/** Adds a handler without a word to the host, as for what `session.join` itself asks for. */
export function add(type, handler) {
  lastNumber += 1;
  const subscription = { type, handler, number: lastNumber, active: true };
  const others = subscriptions.get(type);
  if (others) others.push(subscription);
  else subscriptions.set(type, [subscription]);
  forgetAudience(type);
  return subscription;
}

/** Removes a handler without a word to the host; true if it was the last of its type. */
export function remove(subscription) {
  if (!subscription.active) return false;
  // It may be in an audience that is just being served.
  subscription.active = false;
  const { type } = subscription;
  const others = subscriptions.get(type).filter((other) => other !== subscription);
  if (others.length > 0) subscriptions.set(type, others);
  else subscriptions.delete(type);
  forgetAudience(type);
  return others.length === 0;
}

/** Adds a handler and lets the host know that events of its type are wanted. */
export function subscribe(type, handler) {
  const others = subscriptions.get(type);
  const twin = others?.find((other) => other.handler === handler);
  // As in the original, the same function is called once, however often it subscribes.
  const subscription = twin ?? add(type, handler);
  if (!others) tell("session.subscribe", type);
  return subscription;
}

/** Removes a handler and lets the host know if events of its type are no longer wanted. */
export function unsubscribe(subscription) {
  if (remove(subscription)) tell("session.unsubscribe", subscription.type);
}

/** The types that somebody wants to hear of. */
export function wantedTypes() {
  return [...subscriptions.keys()];
}

/** Removes every handler; the host knows already. */
export function removeAll() {
  for (const list of subscriptions.values()) {
    for (const subscription of list) subscription.active = false;
  }
  subscriptions.clear();
  audiences.clear();
}

/** Hands out the events in a JSON text, in order. The runtime calls it, so it never throws. */
export function deliver(text) {
  let events;
  try {
    events = JSON.parse(text);
  } catch (error) {
    logError("the host sent events that cannot be read", error);
    return;
  }
  if (!Array.isArray(events)) return;
  for (const event of events) {
    if (typeof event?.type === "string") handOut(event);
  }
}

function handOut(event) {
  const audience = audienceOf(event.type);
  for (let index = 0; index < audience.length; index += 1) {
    const subscription = audience[index];
    // An earlier handler of this event may have unsubscribed it.
    if (!subscription.active) continue;
    const { handler } = subscription;
    try {
      const outcome = handler(event);
      // A rejection that nobody handles would end the extension.
      if (typeof outcome?.then === "function") outcome.then(undefined, (error) => failed(event, error));
    } catch (error) {
      failed(event, error);
    }
  }
}

function failed(event, error) {
  logError(`a handler of the event "${event.type}" failed`, error);
}

function audienceOf(type) {
  let audience = audiences.get(type);
  if (!audience) {
    const own = subscriptions.get(type) ?? [];
    const all = type === ALL ? [] : (subscriptions.get(ALL) ?? []);
    audience = [...own, ...all].sort((left, right) => left.number - right.number);
    audiences.set(type, audience);
  }
  return audience;
}

function forgetAudience(type) {
  if (type === ALL) audiences.clear();
  else audiences.delete(type);
}

/** The host filters what it sends; that it cannot must not keep a subscription from being made. */
function tell(method, type) {
  request(method, { type }).catch(() => {});
}
