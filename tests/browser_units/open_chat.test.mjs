import assert from "node:assert/strict";
import { test } from "node:test";
import { REDUCERS, emptyChat } from "../../static/chat/store/open-chat.js";
import { rowsOf } from "../../static/chat/store/rows.js";
import { Selected, Store } from "../../static/chat/store/store.js";

const NOON = Date.UTC(2026, 10, 22, 12);

function message(seq, more = {}) {
  return {
    id: `m${seq}`,
    seq,
    role: "user",
    content: `text ${seq}`,
    content_items: null,
    name: "bob",
    sender_id: "2",
    sender_kind: "user",
    at: NOON + 1000 * seq,
    response_id: null,
    status: "completed",
    transport: "",
    reply_to: null,
    revision: 0,
    editedAt: null,
    deletedAt: null,
    reactions: [],
    pinned: false,
    ...more,
  };
}

const answer = (seq, responseId, more = {}) =>
  message(seq, {
    role: "assistant",
    name: "echo",
    sender_id: "9",
    sender_kind: "agent",
    response_id: responseId,
    ...more,
  });

function response(id, more = {}) {
  return {
    id,
    agent: "echo",
    messageId: "",
    status: "running",
    parts: [],
    seq: 0,
    error: null,
    ...more,
  };
}

function opened() {
  const store = new Store(emptyChat("1"), REDUCERS);
  store.dispatch({ type: "opened", chatId: "chat_1" });
  return store;
}

const kinds = (state) =>
  rowsOf(state).map((row) =>
    row.kind === "message" ? row.entry.seq : row.kind === "answer" ? row.id : row.kind,
  );

test("messages stand in the order of the log, each once, however they come", () => {
  const store = opened();
  store.dispatch({ type: "message", entry: message(5) });
  store.dispatch({ type: "page", entries: [message(5), message(4), message(2)], hasOlder: true });
  store.dispatch({ type: "message", entry: message(3) });
  assert.deepEqual(
    store.state.entries.map(({ seq }) => seq),
    [2, 3, 4, 5],
  );
  assert.equal(store.state.hasOlder, true);
});

test("a delta changes neither the messages nor the place of its answer", () => {
  const store = opened();
  const running = response("r1");
  store.dispatch({ type: "message", entry: message(1) });
  store.dispatch({ type: "response", response: running });
  const before = store.state;
  store.dispatch({ type: "response", response: running });
  assert.equal(store.state.entries, before.entries);
  assert.equal(store.state.answers, before.answers);
  assert.notEqual(store.state.live.get("r1"), before.live.get("r1"));
});

test("the stored message takes the place of its answer, whichever comes first", () => {
  for (const order of [
    ["response", "message", "response-end"],
    ["message", "response", "response-end"],
    ["response", "response-end", "message"],
  ]) {
    const store = opened();
    const given = response("r1", { status: "completed", parts: [{ kind: "text", text: "hi" }] });
    const actions = {
      response: { type: "response", response: { ...given, status: "running" } },
      "response-end": { type: "response-end", response: given },
      message: { type: "message", entry: answer(2, "r1") },
    };
    for (const type of order) store.dispatch(actions[type]);
    assert.deepEqual(kinds(store.state), ["day", 2], order.join());
  }
});

test("an answer without a message stays where it ended", () => {
  const store = opened();
  store.dispatch({ type: "message", entry: message(1) });
  store.dispatch({ type: "response", response: response("r1") });
  store.dispatch({ type: "response", response: response("r2") });
  store.dispatch({
    type: "response-end",
    response: response("r1", { status: "cancelled", seq: 2 }),
  });
  store.dispatch({ type: "message", entry: message(3) });
  assert.deepEqual(kinds(store.state), ["day", 1, "r1", 3, "r2"]);
  store.dispatch({ type: "response-end", response: response("r2", { status: "completed" }) });
  assert.deepEqual(kinds(store.state), ["day", 1, "r1", 3]);
});

test("only the person who asked may ask again", () => {
  for (const [asker, again] of [
    ["1", "why?"],
    ["2", ""],
  ]) {
    const store = opened();
    store.dispatch({ type: "message", entry: message(1, { sender_id: asker, content: "why?" }) });
    store.dispatch({ type: "message", entry: answer(2, "r1", { status: "failed" }) });
    assert.equal(rowsOf(store.state).at(-1).again, again);
    store.dispatch({
      type: "response-end",
      response: response("r2", { status: "failed", messageId: "m1", error: { message: "No." } }),
      failures: new Map([["r1", "No."]]),
    });
    assert.equal(rowsOf(store.state).at(-1).again, again);
    assert.equal(rowsOf(store.state).at(-2).error, "No.");
  }
});

test("days, the unread line, and messages that follow one another", () => {
  const store = opened();
  const nextDay = 86_400_000;
  store.dispatch({
    type: "page",
    entries: [
      message(1),
      message(2),
      message(3, { at: NOON + nextDay }),
      message(4, { at: NOON + nextDay + 1 }),
    ],
    hasOlder: false,
  });
  store.dispatch({ type: "unread-after", seq: 2 });
  assert.deepEqual(kinds(store.state), ["day", 1, 2, "day", "unread", 3, 4]);
  const follows = rowsOf(store.state)
    .filter(({ kind }) => kind === "message")
    .map((row) => row.follows);
  assert.deepEqual(follows, [false, true, false, true]);
});

test("readers stand at the last message that they have read; oneself does not", () => {
  const store = opened();
  store.dispatch({ type: "page", entries: [message(1), message(3)], hasOlder: false });
  const readers = new Map(
    ["1", "2", "3"].map((id) => [id, { user_id: id, username: `u${id}`, seq: Number(id) }]),
  );
  store.dispatch({ type: "readers", readers });
  const places = rowsOf(store.state)
    .filter(({ kind }) => kind === "message")
    .map((row) => row.readers.map(({ username }) => username));
  assert.deepEqual(places, [["u2"], ["u3"]]);
});

test("old messages go, and can be asked for again", () => {
  const store = opened();
  store.dispatch({ type: "page", entries: [1, 2, 3].map((seq) => message(seq)), hasOlder: false });
  store.dispatch({ type: "cut", first: 2, last: 3 });
  assert.deepEqual(
    store.state.entries.map(({ seq }) => seq),
    [2, 3],
  );
  assert.equal(store.state.hasOlder, true);
});

test("a view is asked to draw only when its part of the state is another", () => {
  const store = opened();
  let updates = 0;
  const host = {
    addController: (controller) => controller.hostConnected(),
    requestUpdate: () => {
      updates += 1;
    },
  };
  const selected = new Selected(host, store, (state) => state.turns);
  store.dispatch({ type: "message", entry: message(1) });
  assert.equal(updates, 0);
  store.dispatch({ type: "turns", list: [{ id: "t" }] });
  assert.equal(updates, 1);
  selected.hostDisconnected();
  store.dispatch({ type: "turns", list: [] });
  assert.equal(updates, 1);
  assert.throws(() => store.dispatch({ type: "unheard-of" }), TypeError);
});

test("one's own messages are sent, and read once another person's marker is behind them", () => {
  const store = new Store(emptyChat("1", "chat_1"), REDUCERS);
  const entry = (seq, sender, more = {}) => ({
    id: `m${seq}`,
    seq,
    at: seq,
    sender_id: sender,
    sender_kind: "user",
    name: sender,
    content: "x",
    status: "completed",
    ...more,
  });
  store.dispatch({
    type: "page",
    entries: [entry(1, "1"), entry(2, "2"), entry(3, "1"), entry(4, "1", { deletedAt: 1 })],
    hasOlder: false,
    hasNewer: false,
    failures: new Map(),
  });
  const ticks = () =>
    rowsOf(store.state)
      .filter(({ kind }) => kind === "message")
      .map(({ tick }) => tick);
  store.dispatch({
    type: "readers",
    readers: new Map([["1", { user_id: "1", username: "a", seq: 9 }]]),
  });
  assert.deepEqual(ticks(), ["sent", "", "sent", ""]);
  store.dispatch({ type: "read", reader: { user_id: "2", username: "b", seq: 2 } });
  assert.deepEqual(ticks(), ["read", "", "sent", ""]);
});

test("an answer that was stopped before its first word stays with its author after a reload", () => {
  const store = opened();
  store.dispatch({
    type: "page",
    entries: [message(1), message(9)],
    hasOlder: false,
    hasNewer: false,
  });
  const begun = (id, seq, more = {}) => ({
    type: "response.created",
    response_id: id,
    agent: "paid-echo",
    message_id: "m1",
    seq,
    ...more,
  });
  const stopped = (id, seq, more = {}) => ({
    type: "response.cancelled",
    response_id: id,
    username: "bob",
    user_id: "2",
    seq,
    ...more,
  });
  const events = [
    stopped("r1", 4),
    begun("r1", 2),
    begun("r2", 3),
    { type: "response.error", response_id: "r3", seq: 5 },
    stopped("r4", 7, { partial_output: [{ type: "text", text: "a part" }] }),
    begun("r4", 6),
    stopped("r5", 8),
    begun("r5", 7, { thread: "m1" }),
  ];
  store.dispatch({ type: "facts", events });
  assert.deepEqual(kinds(store.state), ["day", 1, "r1", 9]);
  const { agent, status, reason } = store.state.live.get("r1").response;
  assert.deepEqual([agent, status, reason], ["paid-echo", "cancelled", "bob"]);
});

test("a reply that is being written keeps its quote while the chat is loaded again", () => {
  const store = opened();
  const entry = message(1);
  store.dispatch({ type: "page", entries: [entry], hasOlder: true, hasNewer: false });
  store.dispatch({ type: "reply-to", entry });
  store.dispatch({ type: "emptied" });
  const { chatId, loaded, entries, hasOlder, replyTo } = store.state;
  assert.deepEqual([chatId, loaded, entries, hasOlder], ["chat_1", false, [], false]);
  assert.equal(replyTo, entry);
  store.dispatch({ type: "opened", chatId: "chat_2" });
  assert.equal(store.state.replyTo, null);
});
