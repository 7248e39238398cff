import { joinSession } from "@github/copilot-sdk/extension";

const values = {
  zero: () => 0,
  no: () => false,
  not_a_number: () => NaN,
  big: () => 12345678901234567890n,
  symbol: () => Symbol("s"),
  promised: async () => -1.5,
  promised_nothing: async () => undefined,
  json_text: () => '{"textResultForLlm":"only a text","resultType":"failure"}',
};

await joinSession({ tools: Object.entries(values).map(([name, handler]) => ({ name, handler })) });
