// The official client of AG-UI: `ag_ui_client.mjs ORIGIN KEY TOKEN`.
import { HttpAgent } from "@ag-ui/client";

const [origin, key, token] = process.argv.slice(2);
const warnings = [];
console.warn = (...said) => warnings.push(said.join(" "));
console.error = () => {};

class ThreadAgent extends HttpAgent {
  connect(input) {
    return new HttpAgent({ url: `${this.url}/connect`, headers: this.headers }).run(input);
  }
}

function agentOf(name, threadId, headers = {}) {
  const url = `${origin}/agents/${name}/agui`;
  return new ThreadAgent({
    url,
    threadId,
    headers: { Authorization: `Bearer ${key}`, ...headers },
  });
}

function said(agent, role = "assistant") {
  return agent.messages.filter((one) => one.role === role && one.content).map((one) => one.content);
}

async function ask(agent, content, parameters = {}, subscriber = {}) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return agent.runAgent(parameters, subscriber);
}

async function talk() {
  const agent = agentOf("thinker", "talk");
  await ask(agent, "Hello there");
  return { text: said(agent).join(), thought: said(agent, "reasoning").length };
}

async function tools() {
  const agent = agentOf("tool-user", "tools");
  const tools = [{ name: "search", description: "Find", parameters: { type: "object" } }];
  let pending = [];
  const subscriber = {
    onRunFinishedEvent: (end) => {
      pending = end.pendingToolCallIds ?? [];
    },
  };
  await ask(agent, "find cats", { tools }, subscriber);
  agent.addMessage({ id: "result", role: "tool", toolCallId: pending[0], content: "three cats" });
  await agent.runAgent({ tools }, subscriber);
  return { text: said(agent).at(-1), pending: pending.length };
}

async function state() {
  const agent = agentOf("checklist", "state");
  await ask(agent, "milk");
  agent.setState({ ...agent.state, title: "Shopping" });
  await ask(agent, "tea");
  const back = agentOf("checklist", "state");
  await back.connectAgent();
  const ids = (one) => one.messages.filter((m) => m.role !== "user").map((m) => m.id);
  return {
    state: agent.state,
    back: back.state,
    texts: said(back, "user"),
    ids: [ids(agent), ids(back)],
  };
}

async function pay() {
  const agent = agentOf("paid-echo", "pay");
  await ask(agent, "Hello there");
  const [asked] = agent.pendingInterrupts;
  const back = agentOf("paid-echo", "pay");
  await back.connectAgent();
  const same = back.pendingInterrupts[0]?.id === asked.id;
  const resume = [{ interruptId: asked.id, status: "resolved", payload: { token } }];
  await back.runAgent({ resume });
  return {
    reason: asked.reason,
    same,
    text: said(back).join(),
    left: back.pendingInterrupts.length,
  };
}

async function fail() {
  let code = "";
  const agent = agentOf("fail", "fail");
  await ask(
    agent,
    "hello",
    {},
    {
      onRunErrorEvent: ({ event }) => {
        code = event.code;
      },
    },
  );
  return { code };
}

async function leave() {
  const agent = agentOf("slow", "leave", { "Idempotency-Key": crypto.randomUUID() });
  const subscriber = {
    onTextMessageContentEvent: ({ textMessageBuffer }) => {
      if (textMessageBuffer.includes("word5")) agent.abortRun();
    },
  };
  await ask(agent, "count", {}, subscriber).catch(() => {});
  const back = agentOf("slow", "leave");
  await back.connectAgent();
  return { words: said(back).join().split(" ").length, messages: back.messages.length };
}

async function strangers() {
  const agent = new ThreadAgent({ url: `${origin}/agents/checklist/agui`, threadId: "state" });
  await agent.connectAgent();
  const missing = agentOf("missing", "none");
  const status = await ask(missing, "hello").then(
    () => 0,
    (error) => error.status,
  );
  return { messages: agent.messages.length, status };
}

const seen = {
  talk: await talk(),
  tools: await tools(),
  state: await state(),
  pay: await pay(),
  fail: await fail(),
  leave: await leave(),
  strangers: await strangers(),
};
console.log(JSON.stringify({ ...seen, warnings }));
