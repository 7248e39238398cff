import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

let count = 0;

const session = await joinSession({
  canvases: [createCanvas({
    id: "counter",
    displayName: "Counter",
    description: "Counts",
    inputSchema: { type: "object", properties: { start: { type: "number" } } },
    open: (request) => {
      console.log(`open ${JSON.stringify(request)}`);
      if (request.input.start < 0) throw new RangeError("the counter cannot start below zero");
      count = request.input.start;
      return { url: "http://127.0.0.1:4000/", title: `Counter from ${count}`, status: "ready" };
    },
    actions: [
      {
        name: "add",
        description: "Adds to the counter",
        inputSchema: { type: "object", properties: { by: { type: "number" } } },
        handler: ({ actionName, instanceId, input }) => {
          if (input.by === 0) throw new CanvasError("nothing_to_add", "adding nothing changes nothing");
          count += input.by;
          return { actionName, instanceId, count };
        },
      },
      { name: "reset", description: "Was forgotten" },
    ],
    onClose: ({ instanceId }) => console.log(`closed ${instanceId}`),
  })],
});

const tellOpen = ({ type }) => session.log(`${type}: ${session.openCanvases.map(({ instanceId, title }) => `${instanceId} ${title}`)}`);
session.on("session.canvas.opened", tellOpen);
session.on("session.canvas.closed", tellOpen);
