import assert from "node:assert/strict";
import { test } from "node:test";
import { isUnclear } from "../../static/chat/store/acts.js";
import { entryOf } from "../../static/chat/store/entry.js";
import { REDUCERS, emptyChat } from "../../static/chat/store/open-chat.js";
import { rowsOf } from "../../static/chat/store/rows.js";
import { Store } from "../../static/chat/store/store.js";

const NOON = Date.UTC(2026, 10, 22, 12);
const message = (seq, more = {}) =>
  entryOf(
    {
      id: `m${seq}`,
      role: "user",
      content: `text ${seq}`,
      name: "bob",
      sender_id: "2",
      sender_kind: "user",
      created_at: NOON + 1000 * seq,
      ...more,
    },
    seq,
  );

function opened(...entries) {
  const store = new Store(emptyChat("1"), REDUCERS);
  store.dispatch({ type: "opened", chatId: "chat_1" });
  store.dispatch({ type: "page", entries, hasOlder: false, hasNewer: false });
  return store;
}

const act = (type, id, more = {}) => ({
  type: "act",
  event: { type, message_id: id, user_id: "2", ...more },
});
const entry = (store, id) => store.state.entries.find((one) => one.id === id);
const seqs = (store) => store.state.entries.map(({ seq }) => seq);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => message(from + at));

test("an act that is replayed, or that the history has already, changes nothing", () => {
  const acts = [
    act("reaction.added", "m1", { emoji: "x" }),
    act("reaction.added", "m1", { emoji: "x", user_id: "1" }),
    act("reaction.removed", "m1", { emoji: "x" }),
    act("message.edited", "m1", { content: "new", revision: 1, edited_at: NOON }),
    act("message.pinned", "m1"),
  ];
  const store = opened(message(1));
  for (const one of acts) store.dispatch(one);
  const { content, revision, pinned, reactions } = entry(store, "m1");
  assert.deepEqual([content, revision, pinned], ["new", 1, true]);
  assert.deepEqual(reactions, [{ emoji: "x", count: 1, own: true, users: [{ id: "1" }] }]);
  for (const one of acts) store.dispatch(one);
  assert.equal(entry(store, "m1").content, "new");
  assert.deepEqual(
    entry(store, "m1").reactions.map(({ count }) => count),
    [1],
  );
  // The last one takes its emoji back: the chip goes.
  store.dispatch(act("reaction.removed", "m1", { emoji: "x", user_id: "1" }));
  assert.deepEqual(entry(store, "m1").reactions, []);
});

test("an older edit does not come back over a newer one, and nothing over a deletion", () => {
  const store = opened(
    message(1, { content: "third", revision: 2 }),
    message(2, { reply_to: { id: "m1", name: "bob", content: "third" } }),
  );
  const known = store.state.entries;
  store.dispatch(act("message.edited", "m1", { content: "second", revision: 1, edited_at: NOON }));
  assert.equal(entry(store, "m1").content, "third");
  assert.equal(known[0], store.state.entries[0]);
  store.dispatch(act("message.deleted", "m1", { deleted_at: NOON }));
  store.dispatch(
    act("message.edited", "m1", { content: "", revision: 3, edited_at: NOON, deleted_at: NOON }),
  );
  store.dispatch(act("reaction.added", "m1", { emoji: "x" }));
  assert.deepEqual(
    [entry(store, "m1").content, entry(store, "m1").deletedAt, entry(store, "m1").reactions],
    ["", NOON, []],
  );
  // What answers it quotes it no more.
  assert.equal(entry(store, "m2").reply_to.content, "");
});

test("a deleted answer has nothing left of what its signature covers", () => {
  const covered = {
    signature: "a.b.c",
    stored_output_hash: "0",
    stored_usage_hash: "1",
    salt: "s",
  };
  const store = opened(message(1, { role: "assistant", sender_kind: "agent", ...covered }));
  store.dispatch(act("message.deleted", "m1", { deleted_at: NOON }));
  const answer = entry(store, "m1");
  assert.deepEqual(
    Object.keys(covered).map((name) => answer[name]),
    [null, null, null, null],
  );
});

test("what happened while a page was on its way is in it", () => {
  const store = opened(message(9));
  store.dispatch(act("message.deleted", "m3", { deleted_at: NOON }));
  store.dispatch({ type: "page", entries: [message(3)], hasOlder: false });
  assert.equal(entry(store, "m3").content, "");
});

test("a count whose members are not all listed is read again", () => {
  const store = opened(
    message(1, {
      reactions: [{ emoji: "x", count: 30, own: false, users: [{ id: "7", name: "eve" }] }],
    }),
  );
  const event = { type: "reaction.added", message_id: "m1", user_id: "2", emoji: "x" };
  assert.equal(isUnclear(entry(store, "m1"), event), true);
  assert.equal(isUnclear(entry(store, "m1"), { ...event, emoji: "y" }), false);
  store.dispatch({ type: "act", event });
  assert.equal(entry(store, "m1").reactions[0].count, 30);
  store.dispatch({
    type: "refreshed",
    entry: message(1, { reactions: [{ emoji: "x", count: 31, own: false, users: [{ id: "7" }] }] }),
  });
  assert.equal(entry(store, "m1").reactions[0].count, 31);
});

test("the pinned messages follow edits, deletions and unpinning", () => {
  const store = opened(message(1, { pinned: true }));
  store.dispatch({
    type: "pins",
    entries: [message(1, { pinned: true }), message(2, { pinned: true })],
  });
  store.dispatch(act("message.edited", "m1", { content: "new", revision: 1, edited_at: NOON }));
  assert.deepEqual(
    store.state.pins.map(({ content }) => content),
    ["new", "text 2"],
  );
  store.dispatch(act("message.unpinned", "m1"));
  store.dispatch(act("message.deleted", "m2", { deleted_at: NOON }));
  assert.deepEqual(store.state.pins, []);
  assert.equal(entry(store, "m1").pinned, false);
});

test("the part that is shown has no gap: what arrives behind its end is counted, not shown", () => {
  const store = opened(...range(1, 10));
  store.dispatch({ type: "cut", first: 1, last: 6 });
  store.dispatch({ type: "message", entry: message(11) });
  store.dispatch({ type: "message", entry: message(12, { sender_id: "1" }) });
  assert.deepEqual(
    [seqs(store).at(-1), store.state.hasNewer, store.state.arrived],
    [6, true, [11]],
  );
  // The page that ends before the newest known message is not the end.
  store.dispatch({ type: "page", entries: range(7, 11), hasNewer: false });
  assert.equal(store.state.hasNewer, true);
  store.dispatch({ type: "page", entries: [message(12)], hasNewer: false });
  assert.deepEqual([seqs(store).length, store.state.hasNewer], [12, false]);
  store.dispatch({ type: "message", entry: message(13) });
  assert.equal(seqs(store).at(-1), 13);
});

test("another place takes the place of what is there, and keeps what the person is doing", () => {
  const store = opened(...range(90, 100));
  store.dispatch({ type: "reply-to", entry: message(95) });
  store.dispatch({
    type: "facts",
    events: [
      { type: "participant.joined", seq: 97, participant: { kind: "user", id: "3", name: "eve" } },
    ],
  });
  store.dispatch({
    type: "place",
    entries: range(10, 20).reverse(),
    hasOlder: true,
    hasNewer: true,
  });
  store.dispatch({
    type: "facts",
    events: [
      { type: "participant.joined", seq: 150, participant: { kind: "user", id: "4", name: "ann" } },
    ],
  });
  assert.deepEqual(
    [seqs(store)[0], seqs(store).at(-1), store.state.newest, store.state.replyTo.id],
    [10, 20, 100, "m95"],
  );
  assert.deepEqual(
    rowsOf(store.state).filter(({ kind }) => kind === "change"),
    [],
  );
  // A message that is older than all of them belongs to a page that is not here.
  store.dispatch({ type: "message", entry: message(5) });
  assert.equal(seqs(store)[0], 10);
});

test("answers that run, and those that ended elsewhere, stand at the end only", () => {
  const store = opened(...range(1, 10));
  store.dispatch({
    type: "response",
    response: { id: "r1", agent: "echo", messageId: "m10", status: "running", parts: [], seq: 0 },
  });
  store.dispatch({ type: "cut", first: 1, last: 6 });
  assert.equal(
    rowsOf(store.state).some(({ kind }) => kind === "answer"),
    false,
  );
  store.dispatch({ type: "page", entries: range(7, 10), hasNewer: false });
  assert.equal(rowsOf(store.state).at(-1).kind, "answer");
});

test("an answer that was made again takes the place of its former versions", () => {
  const answer = (seq, more) => message(seq, { role: "assistant", sender_kind: "agent", ...more });
  const store = opened(message(1), answer(2), answer(3));
  store.dispatch({ type: "message", entry: answer(4, { version_of: "m2" }) });
  assert.deepEqual(seqs(store), [1, 3, 4]);
  store.dispatch({ type: "message", entry: answer(5, { version_of: "m2" }) });
  assert.deepEqual(seqs(store), [1, 3, 5]);
  // One that comes late is not shown beside the last one.
  store.dispatch({ type: "message", entry: answer(4, { version_of: "m2" }) });
  assert.deepEqual(seqs(store), [1, 3, 5]);
});
