import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { LiveResponse, reasonOf } from "../../static/uamp/live-response.js";
import { Outbox, openOutbox } from "../../static/uamp/outbox.js";
import { Payments } from "../../static/uamp/payments.js";
import { UampClient } from "../../static/uamp/client.js";
import { Rest, ask } from "../../static/uamp/program.js";

class Memory {
  kept = new Map();
  getItem = (key) => this.kept.get(key) ?? null;
  setItem = (key, value) => this.kept.set(key, value);
  removeItem = (key) => this.kept.delete(key);
  key = (index) => Array.from(this.kept.keys())[index] ?? null;
  get length() {
    return this.kept.size;
  }
}

/** The locks of a browser, held until their page is closed. */
class Locks {
  held = new Set();
  request = async (name, ...rest) => {
    const run = rest.at(-1);
    if (this.held.has(name)) return run(null);
    this.held.add(name);
    const result = await run({ name });
    this.held.delete(name);
    return result;
  };
}

/** A socket that keeps what was sent. */
class FakeSocket {
  static OPEN = 1;
  static last = null;
  readyState = 1;
  sent = [];
  constructor(url) {
    this.url = url;
    FakeSocket.last = this;
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {}
  receive(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
  }
}

const clients = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

function openChat() {
  globalThis.WebSocket = FakeSocket;
  const client = new UampClient({ url: "ws://test/uamp", userId: "1", storage: new Memory() });
  clients.push(client);
  const chat = client.open("chat_1", { epoch: "e", after: 4 });
  const socket = FakeSocket.last;
  socket.onopen();
  socket.receive({
    type: "session.created",
    chat: "chat_1",
    session_id: "s1",
    epoch: "e",
    seq: 6,
    resumed: true,
  });
  return { client, chat, socket };
}

test("the reason of an end names who stopped the answer, or the error", () => {
  const stopped = { type: "response.cancelled", user_id: "7", username: "bob" };
  assert.equal(reasonOf(stopped, "1"), "bob");
  assert.equal(reasonOf(stopped, "7"), "you");
  assert.equal(reasonOf({ type: "response.cancelled" }, "1"), "");
  assert.equal(reasonOf({ type: "response.error", error: { code: "timeout" } }, "1"), "timeout");
});

test("a lost connection says since when, until there is one again", () => {
  const { client, socket } = openChat();
  assert.equal(client.state.lostAt, 0);
  const before = Date.now();
  socket.onclose({ code: 1006 });
  const { lostAt } = client.state;
  assert.ok(lostAt >= before && lostAt <= Date.now());
  client.connect();
  assert.deepEqual([client.state.phase, client.state.lostAt], ["connecting", lostAt]);
  FakeSocket.last.onclose({ code: 1006 });
  assert.equal(client.state.lostAt, lostAt);
  client.connect();
  FakeSocket.last.onopen();
  assert.equal(client.state.lostAt, 0);
});

test("text is put together by offsets, also when pieces come twice", () => {
  const response = new LiveResponse("r");
  const say = (text, offset) =>
    response.applyDelta({ type: "response.delta", delta: { type: "text", text }, offset });
  say("Hi 👋", 0);
  say("👋 you", 3);
  say("lost", 99);
  assert.equal(response.text, "Hi 👋 you");
  say("All new", 0);
  assert.equal(response.text, "All new");
});

test("a running answer says for whose payment it waits, until it goes on", () => {
  const { chat, socket } = openChat();
  const stage = (name, message) =>
    socket.receive({
      type: "progress",
      session_id: "s1",
      target: "response",
      target_id: "r",
      response_id: "r",
      stage: name,
      message,
    });
  stage("waiting_for_payment", "too early");
  assert.equal(chat.responses.size, 0);
  socket.receive({
    type: "response.created",
    session_id: "s1",
    response_id: "r",
    agent: "paid",
    seq: 7,
  });
  const response = chat.responses.get("r");
  stage("waiting_for_payment", "Waiting for bob's payment");
  assert.equal(response.waitsFor, "Waiting for bob's payment");
  stage("in_progress");
  assert.equal(response.waitsFor, "");
  stage("waiting_for_payment", "Waiting for bob's payment");
  socket.receive({
    type: "response.delta",
    session_id: "s1",
    response_id: "r",
    offset: 0,
    delta: { type: "text", text: "Hi" },
  });
  assert.equal(response.waitsFor, "");
});

test("a turn survives a reload and is found again by its request", () => {
  const storage = new Memory();
  const turn = new Outbox(storage, "1").add("chat_1", "hello", []);
  const outbox = new Outbox(storage, "1");
  assert.deepEqual(outbox.of("chat_1"), [turn]);
  assert.equal(
    outbox.match("chat_1", { content: "x", client_event_id: turn.frames.at(-1).event_id }).id,
    turn.id,
  );
  assert.deepEqual(new Outbox(storage, "2").turns, []);
});

test("a page has the turns of closed pages, and none of an open one", async () => {
  const places = { storage: new Memory(), locks: new Locks(), ofTab: new Memory() };
  const first = await openOutbox("1", places);
  first.add("chat_1", "hello", []);
  assert.deepEqual((await openOutbox("1", places)).turns, []);
  const [lock] = places.locks.held;
  places.locks.held.delete(lock);
  assert.deepEqual((await openOutbox("2", places)).turns, []);
  const heir = await openOutbox("1", places);
  assert.deepEqual(
    heir.turns.map(({ text }) => text),
    ["hello"],
  );
  assert.deepEqual((await openOutbox("1", places)).turns, []);
  assert.equal(places.storage.length, 1);
  heir.forget();
  assert.equal(places.storage.length, 0);
});

test("without locks the turns stay with their tab", async () => {
  const places = { storage: new Memory(), locks: undefined, ofTab: new Memory() };
  Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
  (await openOutbox("1", places)).add("chat_1", "hello", []);
  assert.deepEqual([places.storage.length, places.ofTab.length], [0, 1]);
  assert.equal((await openOutbox("1", places)).turns.length, 1);
});

test("what was sent in a session that is gone is not sent again by itself", () => {
  const { client, chat, socket } = openChat();
  const sent = chat.send({ text: "may be stored" });
  socket.onclose({ code: 1006 });
  const waiting = chat.send({ text: "is not stored" });
  client.retryNow();
  const next = FakeSocket.last;
  next.onopen();
  next.receive({
    type: "session.created",
    chat: "chat_1",
    session_id: "s2",
    epoch: "e",
    seq: 6,
    resumed: true,
  });
  assert.deepEqual([sent.state, waiting.state], ["unknown", "sent"]);
  assert.deepEqual(
    next.sent.filter(({ type }) => type === "input.text").map(({ text }) => text),
    ["is not stored"],
  );
  const message = {
    id: "m",
    role: "user",
    sender_id: "1",
    content: "may be stored",
    client_event_id: sent.frames.at(-1).event_id,
  };
  next.receive({ type: "message.created", session_id: "s2", seq: 7, message });
  assert.deepEqual(chat.turns, [waiting]);
});

test("a payment that is sent twice is one submission", () => {
  const payments = new Payments(() => {});
  const asked = payments.asked({
    type: "payment.required",
    response_id: "r",
    requirements: { amount: "1", currency: "USD" },
  });
  assert.equal(payments.submission(asked).event_id, payments.submission(asked).event_id);
  payments.accepted({ type: "payment.accepted", response_id: "r" });
  assert.deepEqual(payments.list, []);
});

const APPROVAL = {
  type: "tool.approval_required",
  session_id: "s1",
  response_id: "r",
  call_id: "c",
  name: "delete_file",
};
const BILL = {
  type: "payment.required",
  session_id: "s1",
  response_id: "r",
  requirements: { amount: "1", currency: "USD" },
};

test("a request stays open where the connection is lost before the server repeats it", (t) => {
  const { client, chat, socket } = openChat();
  socket.receive(APPROVAL);
  socket.receive(BILL);
  chat.pay(chat.payments.list[0]);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  socket.onclose({ code: 1006 });
  client.connect();
  FakeSocket.last.onopen();
  FakeSocket.last.receive({
    type: "session.created",
    chat: "chat_1",
    session_id: "s1",
    epoch: "e",
    seq: 6,
    resumed: true,
  });
  FakeSocket.last.onclose({ code: 1006 });
  t.mock.timers.tick(3_000);
  assert.deepEqual(
    [chat.approvals.list[0].state, chat.payments.list.map(({ state }) => state)],
    ["asking", ["sent"]],
  );
});

test("a chat with another log has only the requests and the queue that the server sends again", () => {
  const { client, chat, socket } = openChat();
  for (const id of ["r", "gone"]) {
    socket.receive({ ...APPROVAL, response_id: id });
    socket.receive({ ...BILL, response_id: id });
  }
  socket.receive({ type: "payment.accepted", session_id: "s1", response_id: "r" });
  chat.pay(chat.payments.list[0]);
  const item = { id: "q", user_id: "2", client_event_id: "x" };
  socket.receive({ type: "queue.updated", session_id: "s1", at: 9, items: [item] });
  // A page starts afresh with a reset, and then has what the events say.
  const shown = {};
  const { approvals, payments } = chat;
  const keysOf = ({ list }) => list.map(({ responseId }) => responseId);
  chat.addEventListener("reset", () => Object.assign(shown, { approvals: [], payments: [] }));
  chat.addEventListener("approvals", () => Object.assign(shown, { approvals: keysOf(approvals) }));
  chat.addEventListener("payments", () => Object.assign(shown, { payments: keysOf(payments) }));
  chat.addEventListener("queue", ({ detail }) => Object.assign(shown, { queue: detail }));
  socket.onclose({ code: 1006 });
  client.connect();
  FakeSocket.last.onopen();
  FakeSocket.last.receive({
    type: "session.created",
    chat: "chat_1",
    session_id: "s1",
    epoch: "f",
    seq: 2,
    resumed: false,
  });
  assert.deepEqual(shown, { approvals: [], payments: [], queue: [] });
  assert.deepEqual([approvals.list, payments.list, chat.queue], [[], [], []]);
  FakeSocket.last.receive(APPROVAL);
  FakeSocket.last.receive(BILL);
  FakeSocket.last.receive({ type: "queue.updated", session_id: "s1", at: 8, items: [item] });
  assert.deepEqual(shown, { approvals: ["r"], payments: ["r"], queue: [item] });
  // The user pays in another log only what is due there.
  assert.deepEqual(
    FakeSocket.last.sent.map(({ type }) => type),
    ["session.create"],
  );
});

/** Reconnect to a server on which the chat has another log. */
function reset({ client, socket }) {
  socket.onclose({ code: 1006 });
  client.connect();
  FakeSocket.last.onopen();
  FakeSocket.last.receive({
    type: "session.created",
    chat: "chat_1",
    session_id: "s1",
    epoch: "f",
    seq: 2,
    resumed: false,
  });
}

test("a chat with another log is ready when the page has that log", () => {
  const opened = openChat();
  const { chat } = opened;
  const events = [];
  for (const type of ["ready", "reset"]) chat.addEventListener(type, () => events.push(type));
  reset(opened);
  assert.deepEqual(events, ["reset"]);
  chat.reconcile("f", []);
  assert.deepEqual(events, ["reset", "ready"]);
  // A connection that is lost while the page loads the history is not ready.
  chat.lost();
  chat.reconcile("f", []);
  assert.deepEqual(events, ["reset", "ready"]);
});

test("a program whose chat has another log does not wait for an answer that is gone", async () => {
  const opened = openChat();
  const { chat, socket } = opened;
  const pieces = ask(chat, "@echo hello", { answerMs: 2_000, beginMs: 2_000 });
  const next = pieces.next();
  const message = {
    id: "m",
    role: "user",
    sender_id: "1",
    content: "@echo hello",
    client_event_id: socket.sent.at(-1).event_id,
  };
  socket.receive({ type: "message.created", session_id: "s1", seq: 7, message });
  socket.receive({
    type: "response.created",
    session_id: "s1",
    response_id: "r",
    agent: "echo",
    message_id: "m",
  });
  reset(opened);
  await assert.rejects(next, { code: "outcome_unknown" });

  // What was sent before the reset is not sent into the new log.
  const second = ask(chat, "and this", { answerMs: 2_000, beginMs: 2_000 }).next();
  reset({ ...opened, socket: FakeSocket.last });
  await assert.rejects(second, { code: "outcome_unknown" });
  assert.deepEqual(chat.turns, []);
  chat.reconcile("f", []);
  assert.deepEqual(
    FakeSocket.last.sent.map(({ type }) => type),
    ["session.create"],
  );
});

test("a program's message that was not sent yet goes into the new log of its chat", async () => {
  const opened = openChat();
  const { client, chat, socket } = opened;
  socket.onclose({ code: 1006 });
  const waiting = ask(chat, "@echo hello", { answerMs: 2_000, beginMs: 2_000 }).next();
  assert.deepEqual(
    chat.turns.map(({ state }) => state),
    ["waiting"],
  );
  reset({ client, socket });
  const { sent } = FakeSocket.last;
  assert.deepEqual(
    sent.map(({ type }) => type),
    ["session.create", "input.text", "response.create"],
  );
  const [ids, session_id] = [{ message_id: "m", response_id: "r" }, "s1"];
  FakeSocket.last.receive({
    type: "message.created",
    session_id,
    seq: 3,
    message: {
      id: "m",
      role: "user",
      sender_id: "1",
      content: "@echo hello",
      client_event_id: sent.at(-1).event_id,
    },
  });
  FakeSocket.last.receive({ type: "response.created", session_id, agent: "echo", ...ids });
  FakeSocket.last.receive({
    type: "response.delta",
    session_id,
    offset: 0,
    delta: { type: "text", text: "hello" },
    ...ids,
  });
  assert.equal((await waiting).value.text, "hello");
});

test("a request of a program that is not answered ends", async (t) => {
  const limits = [];
  t.mock.method(AbortSignal, "timeout", (ms) => {
    limits.push(ms);
    return AbortSignal.abort(new DOMException("late", "TimeoutError"));
  });
  globalThis.fetch = async (_, { signal }) => signal.throwIfAborted();
  const rest = new Rest("http://h", "uak_1");
  // The first request may still be running, so none is repeated.
  for (const request of [
    { method: "POST" },
    { method: "POST", body: { content: "hello", wait: 300 }, idempotencyKey: "1" },
    {},
  ])
    await assert.rejects(rest.request("/api/v1/messages", request), { name: "TimeoutError" });
  assert.deepEqual(limits, [60_000, 360_000, 60_000]);
});

test("a chat resumes behind the last event that it has, and folds each event once", () => {
  const { chat, socket } = openChat();
  assert.deepEqual(socket.sent[0].resume, { epoch: "e", after: 4 });
  const seen = [];
  chat.addEventListener("message", (event) => seen.push(event.detail.seq));
  const frame = {
    type: "message.created",
    session_id: "s1",
    seq: 7,
    message: { id: "m", role: "user", sender_id: "2", content: "x" },
  };
  socket.receive(frame);
  socket.receive(frame);
  assert.deepEqual(seen, [7]);
});

test("a turn that the server does not take now is held; one that it refuses fails", () => {
  const { chat, socket } = openChat();
  const turn = chat.send({ text: "hello" });
  const { event_id: cause } = socket.sent.at(-1);
  socket.receive({
    type: "session.error",
    session_id: "s1",
    error: { code: "unavailable", details: { event_id: cause, retry_after: 60 } },
  });
  assert.equal(turn.state, "held");
  const other = openChat();
  const refused = other.chat.send({ text: "hello" });
  other.socket.receive({
    type: "response.error",
    session_id: "s1",
    error: {
      code: "forbidden",
      message: "No.",
      details: { event_id: other.socket.sent.at(-1).event_id },
    },
  });
  assert.deepEqual([refused.state, refused.error], ["failed", "No."]);
});

test("a cancelled answer is kept among those that broke off", () => {
  const { chat, socket } = openChat();
  const said = [];
  chat.addEventListener("response-end", (event) => said.push(event.detail.status));
  socket.receive({
    type: "response.created",
    session_id: "s1",
    response_id: "r",
    agent: "echo",
    message_id: "m",
  });
  socket.receive({ type: "response.cancelled", session_id: "s1", response_id: "r", seq: 9 });
  assert.deepEqual(said, ["cancelled"]);
  assert.equal(chat.broken.get("r").seq, 9);
  assert.equal(chat.responses.size, 0);
});

test("the state that a chat shares follows its patches, each once", () => {
  const { chat, socket } = openChat();
  const seen = [];
  chat.addEventListener("state", ({ detail }) => seen.push(detail.version));
  let seq = 6;
  const update = (version, ...patch) =>
    socket.receive({
      type: "state.updated",
      session_id: "s1",
      seq: (seq += 1),
      chat_id: "chat_1",
      version,
      patch,
      agent: "checklist",
    });
  update(1, { op: "add", path: "/items", value: ["milk"] });
  update(
    2,
    { op: "add", path: "/items/-", value: "tea" },
    { op: "add", path: "/a~1b", value: { c: 1 } },
  );
  update(2, { op: "add", path: "/items/-", value: "twice" });
  update(
    3,
    { op: "replace", path: "/a~1b/c", value: 2 },
    { op: "remove", path: "/items/0" },
    { op: "add", path: "/__proto__", value: 1 },
  );
  assert.equal(JSON.stringify(chat.state.value), '{"items":["tea"],"a/b":{"c":2},"__proto__":1}');
  assert.deepEqual([seen, chat.state.by], [[1, 2, 3], "checklist"]);
});
