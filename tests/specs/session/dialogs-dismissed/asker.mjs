import { joinSession } from "@github/copilot-sdk/extension";

const form = { message: "Form", requestedSchema: { type: "object", properties: { a: { type: "string" } } } };
const session = await joinSession({
  tools: [{
    name: "ask",
    description: "Asks",
    handler: async () => {
      const { ui } = session;
      const answers = [await ui.confirm("1"), await ui.confirm("2"), await ui.select("3", ["a"]), await ui.input("4"), await ui.input("5"), await ui.elicitation(form), await ui.elicitation(form)];
      const nobody = await ui.confirm("8").catch(({ message }) => message);
      const noList = await ui.select("9", "a").catch(({ message }) => message);
      return [...answers.map((answer) => JSON.stringify(answer)), nobody, noList].join("\n");
    },
  }],
});
