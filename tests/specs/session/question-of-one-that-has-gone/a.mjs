import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({ tools: [{ name: "ask", handler: () => { session.ui.confirm("sure?").then((x) => console.log("got", x), (e) => console.log("err", e.message)); return "asked"; } },
 { name: "exit", handler: () => { setTimeout(() => process.exit(1), 10); return "bye"; } } ] });
