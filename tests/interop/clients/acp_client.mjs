// The TypeScript client of ACP over both of its transports.
import { client, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import WebSocket from "ws";

const [origin, key, transport, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${key}` };
const prompt = [{ type: "text", text: "Hello there" }];

function streamOf(agent) {
  const path = `/agents/${agent}/acp`;
  if (transport === "http") return createHttpStream(origin + path, { headers });
  return createWebSocketStream(origin.replace("http", "ws") + path, { headers, WebSocket });
}

async function connected(agent, use) {
  const updates = [];
  const app = client()
    .onNotification("session/update", ({ params }) => updates.push(params.update))
    .onRequest("session/request_permission", ({ params }) => ({
      outcome: { outcome: "selected", optionId: params.options[0].optionId },
    }));
  const connection = app.connect(streamOf(agent));
  const call = (method, params) => connection.agent.request(method, params);
  const text = () =>
    updates
      .filter((one) => one.sessionUpdate === "agent_message_chunk")
      .map((one) => one.content.text)
      .join("");
  await call("initialize", { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  try {
    return await use(call, { updates, text, connection });
  } finally {
    connection.close();
  }
}

const fresh = { cwd: "/", mcpServers: [] };
const seen = {};
let sessionId;
await connected("thinker", async (call, { text }) => {
  ({ sessionId } = await call("session/new", fresh));
  seen.stop = (await call("session/prompt", { sessionId, prompt })).stopReason;
  seen.text = text();
  const listed = await call("session/list", {});
  seen.listed = listed.sessions[0].sessionId === sessionId;
});
await connected("thinker", async (call, { updates, text }) => {
  await call("session/load", { sessionId, ...fresh });
  seen.loaded = [...new Set(updates.map((one) => one.sessionUpdate))].sort();
  await call("session/prompt", { sessionId, prompt });
  seen.again = text();
});
await connected("slow", async (call, { text, connection }) => {
  const { sessionId } = await call("session/new", fresh);
  const asked = call("session/prompt", { sessionId, prompt });
  while (!text()) await new Promise((resolve) => setTimeout(resolve, 50));
  await connection.agent.notify("session/cancel", { sessionId });
  seen.cancelled = (await asked).stopReason;
});
await connected("paid-echo", async (call, { text }) => {
  const { sessionId } = await call("session/new", fresh);
  seen.unpaid = await call("session/prompt", { sessionId, prompt }).catch((error) => error.code);
  const paid = { sessionId, prompt, _meta: { payment_token: token } };
  seen.paid = [(await call("session/prompt", paid)).stopReason, text()];
});
console.log(JSON.stringify(seen));
process.exit(0);
