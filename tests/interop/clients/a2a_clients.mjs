// A2A's JavaScript client of 1.0: `a2a_clients.mjs ORIGIN KEY BINDING`.
import { createServer } from "node:http";
import {
  SendMessageRequest,
  StreamResponse,
  TaskPushNotificationConfig,
  TaskState,
  taskStateToJSON,
} from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";

const [origin, key, binding] = process.argv.slice(2);
const SEEN_PIECES = 3;
const TOOL = { type: "function", function: { name: "search", parameters: { type: "object" } } };

function authorized(url, options = {}) {
  const headers = new Headers(options.headers);
  headers.set("Authorization", `Bearer ${key}`);
  return fetch(url, { ...options, headers });
}

const Transport = binding === "JSONRPC" ? JsonRpcTransportFactory : RestTransportFactory;
const factory = new ClientFactory({ transports: [new Transport({ fetchImpl: authorized })] });
const client = (agent) => factory.createFromUrl(`${origin}/agents/${agent}/`);

function asked(text, members = {}, configuration = {}) {
  const message = {
    messageId: crypto.randomUUID(),
    role: "ROLE_USER",
    parts: [{ text }],
    ...members,
  };
  return SendMessageRequest.fromJSON({ message, configuration });
}

const state = (task) => taskStateToJSON(task.status.state);
const textOf = (task) =>
  task.artifacts.flatMap((one) => one.parts.map((part) => part.content.value)).join("");

async function failure(call) {
  try {
    await call;
    return "";
  } catch (error) {
    return error.name;
  }
}

const received = [];
const receiver = createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const { payload } = StreamResponse.fromJSON(JSON.parse(Buffer.concat(pieces).toString()));
    received.push([payload.value, request.headers["x-a2a-notification-token"]]);
    response.end();
  });
});
await new Promise((listening) => receiver.listen(0, "127.0.0.1", listening));
const hook = `http://127.0.0.1:${receiver.address().port}/hook`;

async function notified(taskId, wanted) {
  for (;;) {
    const found = received.find(([task]) => task.id === taskId && task.status.state === wanted);
    if (found) return found;
    await new Promise((later) => setTimeout(later, 100));
  }
}

const seen = {};

const echo = await client("echo");
seen.stream = "";
for await (const { payload } of echo.sendMessageStream(asked("Hello there"))) {
  if (payload.$case === "artifactUpdate") {
    seen.stream += payload.value.artifact.parts.map((part) => part.content.value).join("");
  }
  if (payload.$case === "statusUpdate") seen.end = state(payload.value);
}
const inline = { taskPushNotificationConfig: { url: hook, token: "its-token" } };
const whole = await echo.sendMessage(asked("Again", { contextId: "ctx" }, inline));
seen.whole = [state(whole), textOf(whole), whole.contextId];
seen.got = state(await echo.getTask({ id: whole.id }));
seen.missing = await failure(echo.getTask({ id: "none" }));
const [sent, token] = await notified(whole.id, TaskState.TASK_STATE_COMPLETED);
seen.notified = [textOf(sent), token];

const slow = await client("slow");
const begun = await slow.sendMessage(asked("Count", {}, { returnImmediately: true }));
const wanted = TaskPushNotificationConfig.fromJSON({ taskId: begun.id, id: "mine", url: hook });
seen.set = (await slow.createTaskPushNotificationConfig(wanted)).id;
const listed = await slow.listTaskPushNotificationConfig({ taskId: begun.id });
seen.listed = listed.configs.map((one) => one.url === hook);
seen.kinds = [];
for await (const { payload } of slow.resubscribeTask({ id: begun.id })) {
  seen.kinds.push(payload.$case);
  if (seen.kinds.length === SEEN_PIECES) break;
}
seen.cancelled = state(await slow.cancelTask({ id: begun.id }));
await notified(begun.id, TaskState.TASK_STATE_CANCELED);
await slow.deleteTaskPushNotificationConfig({ taskId: begun.id, id: "mine" });
seen.left = (await slow.listTaskPushNotificationConfig({ taskId: begun.id })).configs.length;

const user = await client("tool-user");
const asks = await user.sendMessage(asked("Find it", { metadata: { uamp_tools: [TOOL] } }));
const done = await user.sendMessage(asked("three cats", { taskId: asks.id }));
seen.tool = [state(asks), state(done), textOf(done)];

receiver.close();
receiver.closeAllConnections();
console.log(JSON.stringify(seen));
process.exit(0);
