import assert from "node:assert/strict";
import { test } from "node:test";
import { REDUCERS, emptyChat } from "../../static/chat/store/open-chat.js";
import { rowsOf } from "../../static/chat/store/rows.js";
import { hasNews } from "../../static/chat/store/threads.js";
import { Store } from "../../static/chat/store/store.js";

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
    versionOf: null,
    thread: null,
    alsoInChat: false,
    replies: null,
    ...more,
  };
}

function opened(thread = "") {
  const store = new Store(emptyChat("1", "", "", "alice"), REDUCERS);
  store.dispatch({ type: "opened", chatId: "chat_1", thread });
  return store;
}

const seqs = ({ state }) => state.entries.map(({ seq }) => seq);
const response = (id, thread) => ({
  id,
  thread,
  agent: "echo",
  messageId: "",
  status: "running",
  parts: [],
  seq: 0,
});

test("a reply stands in its thread, and in the chat where it was sent there too", () => {
  const [chat, thread] = [opened(), opened("m1")];
  for (const store of [chat, thread]) {
    for (const entry of [
      message(1),
      message(2, { thread: "m1" }),
      message(3),
      message(4, { thread: "m1", alsoInChat: true }),
      message(5, { thread: "m3" }),
    ]) {
      store.dispatch({ type: "message", entry });
    }
  }
  assert.deepEqual(seqs(chat), [1, 3, 4]);
  assert.deepEqual(seqs(thread), [1, 2, 4]);
  assert.deepEqual(
    rowsOf(thread.state).map(({ kind }) => kind),
    ["day", "message", "replies", "message", "message"],
  );
});

test("replies are counted once at the message that they name, whatever is replayed", () => {
  const store = opened();
  store.dispatch({ type: "message", entry: message(1, { sender_id: "1", name: "alice" }) });
  const replies = () => store.state.entries[0].replies;
  for (const entry of [
    message(2, { thread: "m1" }),
    message(2, { thread: "m1" }),
    message(3, { thread: "m1", versionOf: "m9" }),
  ]) {
    store.dispatch({ type: "message", entry });
  }
  assert.deepEqual([replies().count, replies().lastSeq, replies().faces.length], [1, 3, 1]);
  // Its author is concerned, until they have read it or written themselves.
  assert.equal(hasNews(replies()), true);
  store.dispatch({
    type: "thread-read",
    event: { type: "message.read", thread: "m1", user_id: "2", seq: 4 },
  });
  assert.equal(hasNews(replies()), true);
  store.dispatch({
    type: "thread-read",
    event: { type: "message.read", thread: "m1", user_id: "1", seq: 4 },
  });
  assert.equal(hasNews(replies()), false);
  store.dispatch({ type: "message", entry: message(5, { thread: "m1" }) });
  store.dispatch({
    type: "message",
    entry: message(6, { thread: "m1", sender_id: "1", name: "alice" }),
  });
  assert.deepEqual(
    [hasNews(replies()), replies().count, replies().faces.map(({ name }) => name)],
    [false, 3, ["alice", "bob"]],
  );
});

test("a reply concerns those who take part or are mentioned alone", () => {
  const store = opened();
  store.dispatch({ type: "message", entry: message(1) });
  store.dispatch({ type: "message", entry: message(2, { thread: "m1" }) });
  assert.equal(hasNews(store.state.entries[0].replies), false);
  store.dispatch({ type: "message", entry: message(3, { thread: "m1", content: "@Alice see" }) });
  assert.equal(hasNews(store.state.entries[0].replies), true);
});

test("an answer grows where it was asked", () => {
  const [chat, thread] = [opened(), opened("m1")];
  for (const store of [chat, thread]) {
    store.dispatch({ type: "message", entry: message(1) });
    store.dispatch({ type: "response", response: response("in-thread", "m1") });
    store.dispatch({ type: "response", response: response("in-chat", "") });
    store.dispatch({ type: "turns", list: [{ id: "t1", thread: "m1" }, { id: "t2" }] });
    store.dispatch({
      type: "facts",
      events: [{ type: "agent.stopped", seq: 9, message: "quiet", thread: "m1" }],
    });
  }
  assert.deepEqual(
    [...chat.state.live.keys(), ...chat.state.turns.map(({ id }) => id), chat.state.changes.length],
    ["in-chat", "t2", 0],
  );
  assert.deepEqual(
    [
      ...thread.state.live.keys(),
      ...thread.state.turns.map(({ id }) => id),
      thread.state.changes.length,
    ],
    ["in-thread", "t1", 1],
  );
});
