import { joinSession } from "@github/copilot-sdk/extension";

// The error says what each extension answers: "skip retry abort".
await joinSession({ hooks: { onErrorOccurred: ({ error }) => ({ errorHandling: error.split(" ")[1] }) } });
