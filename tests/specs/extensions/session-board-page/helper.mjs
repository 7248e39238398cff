import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "visit",
    description: "Visits the page",
    handler: async () => {
      const { canvas } = session.rpc;
      const { url } = await canvas.open({ canvasId: "session-board", instanceId: "b" });
      const status = async (address, options) => (await fetch(address, options)).status;
      const page = await fetch(url);
      const text = await page.text();
      const stream = (await fetch(new URL("events", url))).body.getReader();
      const read = async () => {
        const { value, done } = await stream.read();
        return done ? undefined : new TextDecoder().decode(value);
      };
      const first = await read();
      const seen = {
        loopback: new URL(url).hostname,
        page: [page.status, page.headers.get("content-type"), page.headers.get("content-security-policy").split(";")[0], text.includes("<h1>Session board</h1>")],
        stream: first.split("\n")[0],
        withoutSecret: await status(new URL("/", url)),
        wrongSecret: await status(new URL("/x/", url)),
        fromAnotherPage: await status(url, { headers: { origin: "https://example.com" } }),
        posted: await status(url, { method: "POST" }),
      };
      await canvas.close({ instanceId: "b" });
      let last = "";
      for (let part = await read(); part !== undefined; part = await read()) last += part;
      const gone = await fetch(url).then(() => "still there", () => "gone");
      return JSON.stringify({ ...seen, goodbye: last.includes("event: bye"), afterClose: gone });
    },
  }],
});
