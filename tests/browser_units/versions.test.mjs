import assert from "node:assert/strict";
import { test } from "node:test";
import { REDUCERS, emptyChat } from "../../static/chat/store/open-chat.js";
import { Store } from "../../static/chat/store/store.js";

function message(seq, more = {}) {
  return {
    id: `m${seq}`,
    seq,
    role: "assistant",
    content: `text ${seq}`,
    content_items: null,
    name: "echo",
    sender_id: "9",
    sender_kind: "agent",
    at: 1000 * seq,
    response_id: `r${seq}`,
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

const QUESTION = message(1, {
  role: "user",
  name: "bob",
  sender_id: "2",
  sender_kind: "user",
  response_id: null,
});
const VERSIONS = [message(2), message(4, { versionOf: "m2" }), message(5, { versionOf: "m2" })];
const OTHER = message(3);

function opened() {
  const store = new Store(emptyChat("1"), REDUCERS);
  store.dispatch({ type: "opened", chatId: "chat_1" });
  return store;
}

const seqs = ({ state }) => state.entries.map(({ seq }) => seq);

test("the newest version alone stands in the chat, in whatever order they come", () => {
  const [first, second, third] = VERSIONS;
  for (const order of [
    [first, second, third],
    [third, second, first],
    [second, third, first],
  ]) {
    const store = opened();
    for (const entry of [QUESTION, OTHER, ...order]) store.dispatch({ type: "message", entry });
    assert.deepEqual(seqs(store), [1, 3, 5]);
  }
});

test("a page that was read before a newer version came does not bring the former one back", () => {
  const store = opened();
  store.dispatch({ type: "message", entry: VERSIONS[2] });
  store.dispatch({ type: "page", entries: [QUESTION, VERSIONS[0], OTHER], hasOlder: false });
  assert.deepEqual(seqs(store), [1, 3, 5]);
  store.dispatch({ type: "page", entries: [VERSIONS[1]], hasNewer: false });
  assert.deepEqual(seqs(store), [1, 3, 5]);
});

test("answers in other places stay, and the versions of each place are its own", () => {
  const store = opened();
  for (const entry of [QUESTION, VERSIONS[0], OTHER, message(6, { versionOf: "m3" })])
    store.dispatch({ type: "message", entry });
  assert.deepEqual(seqs(store), [1, 2, 6]);
});
