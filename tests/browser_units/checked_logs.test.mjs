import assert from "node:assert/strict";
import { test } from "node:test";
import { factsOf, sentenceOf, verdictText } from "../../static/chat/dialogs/verify-words.js";
import { CheckedLogs } from "../../static/chat/offline/checked-logs.js";
import {
  KEYS,
  chained,
  checked,
  created,
  entry,
  exported,
  messageOf,
  noteOf,
} from "./exported_logs.mjs";

const AT = 1_767_323_045_000;

class Storage {
  constructor(characters = Infinity) {
    this.items = new Map();
    this._characters = characters;
  }

  getItem = (key) => this.items.get(key) ?? null;
  removeItem = (key) => this.items.delete(key);
  setItem(key, text) {
    if (text.length > this._characters) throw new DOMException("full", "QuotaExceededError");
    this.items.set(key, text);
  }
}

const endOf = (seq, hash = "a") => ({ end: { seq, hash }, tree: null });
const treeOf = (size) => ({ end: null, tree: { newest: { origin: "o", size, root: "r" } } });

/** What an earlier check of a file kept. */
async function knownAfter(file) {
  const logs = new CheckedLogs(new Storage(), "1");
  logs.keep("chat_a", await checked(file), AT);
  return logs.of("chat_a");
}

/** A file whose log continues with one more message. */
function continued(first = "one") {
  const entries = chained([created("msg_1", first), created("msg_2", "two")]);
  return {
    messages: [messageOf("msg_1", 1, first), messageOf("msg_2", 2, "two")],
    entries,
    note: noteOf(2, entries[1].chain_hash),
  };
}

function begun() {
  const entries = chained([created("msg_1", "one")]);
  return {
    messages: [messageOf("msg_1", 1, "one")],
    entries,
    note: noteOf(1, entries[0].chain_hash),
  };
}

test("a log that continues the one of an earlier check is unchanged", async () => {
  const known = await knownAfter(begun());
  assert.deepEqual([known.end.seq, known.end.at], [1, AT]);
  for (const file of [begun(), continued()]) {
    const result = await checked(file, { known });
    assert.equal(result.verdict, "unchanged");
    assert.match(factsOf(result).at(-1), /^The log continues the one that you checked on .*2026/);
  }
  // A first check says nothing about earlier ones.
  const first = await checked(continued());
  assert.ok(factsOf(first).every((text) => !text.includes("continues")));
});

test("a log that was rewritten consistently differs from the one of an earlier check", async () => {
  const file = continued("another one");
  assert.equal((await checked(file)).verdict, "unchanged");
  for (const known of [await knownAfter(begun()), await knownAfter(continued())]) {
    const result = await checked(file, { known });
    assert.equal(result.verdict, "rewritten");
    assert.match(
      verdictText(result),
      /^This chat's history was rewritten since you checked it on .*2026/,
    );
    const [{ kind, seq }] = result.problems;
    assert.deepEqual([result.problemCount, kind, seq], [1, "history_rewritten", known.end.seq]);
    assert.match(sentenceOf(result.problems[0]), /^This entry differs from the one .*2026/);
    assert.equal(result.end, null);
  }
});

test("a log that ends before the end of an earlier check was rewritten", async () => {
  const known = await knownAfter(continued());
  for (const file of [begun(), { messages: [], entries: [], note: noteOf(0, "0".repeat(64)) }]) {
    const result = await checked(file, { known });
    assert.deepEqual(
      [result.verdict, result.problems.map(({ kind }) => kind)],
      ["rewritten", ["history_cut"]],
    );
    assert.match(sentenceOf(result.problems[0]), /^The log had this entry on .*2026/);
  }
});

test("a log whose hashes were removed was rewritten", async () => {
  const known = await knownAfter(continued());
  const file = continued();
  const entries = file.entries.map((line) => ({ ...line, chain_hash: null }));
  assert.equal((await checked({ ...file, entries, note: "" }, { known })).verdict, "rewritten");
});

test("a later check expects the end of a log only if nothing is wrong with the log", async () => {
  const endAfter = async (change) => {
    const file = exported();
    return (await checked({ ...file, ...change(file) })).end?.seq ?? null;
  };
  assert.equal(await endAfter(() => ({})), 4);
  // A message that differs from the log leaves the log as it is.
  assert.equal(await endAfter(({ messages }) => ({ messages: [messages[0]] })), 4);
  assert.equal(
    await endAfter(({ messages }) => ({ messages: [{ ...messages[0], content: "x" }] })),
    4,
  );
  const [first, ...others] = exported().entries;
  for (const more of [
    { entries: [{ ...first, event: {} }, ...others] },
    { entries: others },
    { note: "" },
    { note: noteOf(4, "0".repeat(64)) },
    { note: noteOf(5, "0".repeat(64)) },
    { note: exported().note.replace("time 1", "time 2") },
    { entries: [], note: noteOf(0, "0".repeat(64)) },
  ])
    assert.equal(await endAfter(() => more), null);
  const keys = { ...KEYS, ofLogs: async () => [] };
  assert.equal((await checked(exported(), { keys })).end, null);
  const event = entry("message.read", { message_id: "msg_1" });
  const unsigned = chained([created("msg_1", "one"), event]);
  const note = noteOf(1, unsigned[0].chain_hash);
  const result = await checked({
    messages: [messageOf("msg_1", 1, "one")],
    entries: unsigned,
    note,
  });
  assert.deepEqual([result.verdict, result.end.seq], ["incomplete", 2]);
});

test("the newest end of each chat is kept, and the newest checkpoint", () => {
  const storage = new Storage();
  const logs = new CheckedLogs(storage, "1");
  assert.deepEqual(logs.of("a"), { end: null, tree: null });
  logs.keep("a", endOf(5), 1);
  logs.keep("b", treeOf(7), 2);
  const expected = {
    end: { seq: 5, hash: "a", at: 1 },
    tree: { origin: "o", size: 7, root: "r", at: 2 },
  };
  assert.deepEqual(logs.of("a"), expected);
  assert.deepEqual(logs.of("b"), { ...expected, end: null });
  // Another tab has seen more; a check with a problem has neither.
  logs.keep("a", endOf(4), 3);
  logs.keep("a", treeOf(6), 3);
  logs.keep("a", { end: null, tree: { newest: null } }, 3);
  assert.deepEqual(new CheckedLogs(storage, "1").of("a"), expected);
  assert.deepEqual(new CheckedLogs(storage, "2").of("a"), { end: null, tree: null });
  logs.keep("a", endOf(6, "b"), 4);
  assert.deepEqual(logs.of("a").end, { seq: 6, hash: "b", at: 4 });
});

test("the chats that were checked last are kept", () => {
  const logs = new CheckedLogs(new Storage(), "1");
  for (let n = 0; n < 500; n += 1) logs.keep(`chat_${n}`, endOf(1));
  logs.keep("chat_0", endOf(2));
  logs.keep("chat_500", endOf(1));
  assert.deepEqual(
    ["chat_0", "chat_1", "chat_2", "chat_500"].map((id) => logs.of(id).end?.seq ?? null),
    [2, null, 1, 1],
  );
});

test("a sign-out forgets what was checked, and a full storage keeps nothing", () => {
  const storage = new Storage();
  const logs = new CheckedLogs(storage, "1");
  logs.keep("a", endOf(5));
  assert.deepEqual([...storage.items.keys()], ["uamp.checked-logs.1"]);
  logs.forget();
  logs.keep("a", endOf(6));
  assert.equal(storage.items.size, 0);
  const full = new CheckedLogs(new Storage(20), "1");
  full.keep("a", endOf(5));
  assert.equal(full.of("a").end, null);
});
