import { joinSession } from "@github/copilot-sdk/extension";

const values = {
  text: () => "a\ud83db\ude42c\udc00\ud800",
  object: () => ({ "k\ud800": ["v\udfff"] }),
  result: () => ({ textResultForLlm: "t\ud800", resultType: "failure", error: "e\udbff" }),
  error: () => { throw "thrown \ud800 half"; },
  whole: () => "🙂 \u{10ffff} \ufffd",
  escaped: () => "\\ud800 \\\\ud800 \\\ud800",
};

await joinSession({ tools: Object.entries(values).map(([name, handler]) => ({ name, handler })) });
