import { joinSession } from "@github/copilot-sdk/extension";

class LimitError extends Error {
  name = "LimitError";
}

const things = {
  error: () => new Error("plain"),
  subclass: () => new LimitError("too many"),
  like_an_error: () => ({ message: "looks like one" }),
  object: () => ({ code: 1 }),
  nothing: () => undefined,
  number: () => 0,
  hostile: () => ({ get message() { throw this; }, toString() { throw this; } }),
  lines: () => "two\nlines",
};

await joinSession({
  tools: [
    { name: "throws", handler: ({ what }) => { throw things[what](); } },
    { name: "rejects", handler: ({ what }) => Promise.reject(things[what]()) },
  ],
});
