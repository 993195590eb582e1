import assert from "node:assert/strict";
import { test } from "node:test";
import { millisecondsOf } from "../../static/uamp/logs/log-check.js";
import {
  AT,
  CREATED_AT,
  chained,
  checked,
  created,
  digestOf,
  entry,
  exported,
  messageOf,
  noteOf,
  problemsOf,
} from "./exported_logs.mjs";

test("an unchanged chat has no problem, however it is cut into batches", async () => {
  for (const batch of [1, 2, 3, 100]) {
    const result = await checked(exported(), { batch });
    assert.deepEqual(result.problems, []);
    const { messages, entries, erased, unchained, unverified, absent, unsigned } = result;
    assert.deepEqual(
      { messages, entries, erased, unchained, unverified, absent, unsigned },
      { messages: 3, entries: 4, erased: 0, unchained: 0, unverified: 0, absent: 0, unsigned: 0 },
    );
    assert.deepEqual([result.head.server, result.headState], ["chat.example.com", "signed"]);
  }
});

test("every fact of a message that is changed shows", async () => {
  const changes = {
    seq: 9,
    role: "assistant",
    name: "bob",
    sender_kind: "agent",
    sender_id: "2",
    content: "new\u200b",
    content_items: [{ type: "text", text: "new" }],
    created_at: "2026-01-02T03:04:05.679901Z",
    response_id: "resp_1",
    status: "failed",
    reply_to: "msg_1",
    thread: "msg_1",
    copied_from: "msg_9",
    revision: 0,
    deleted_at: CREATED_AT,
  };
  for (const [name, value] of Object.entries(changes)) {
    const file = exported();
    Object.assign(file.messages[1], { [name]: value });
    const problems = await problemsOf(file);
    assert.deepEqual(problems, [["message_changed", file.messages[1].seq, "msg_2"]], name);
  }
});

test("every member of an entry that is changed shows", async () => {
  const changes = [
    (line) => ({ ...line, event_type: "message.other" }),
    (line) => ({ ...line, response_id: "resp_1" }),
    (line) => ({ ...line, at: AT + 1 }),
    (line) => ({ ...line, chain_hash: "0".repeat(64) }),
    (line) => ({ ...line, chain_hash: "x" }),
    (line) => ({ ...line, chain_hash: null }),
    (line) => ({ ...line, digest: "0".repeat(64) }),
    (line) => ({ ...line, event: { ...line.event, user_id: "2" } }),
    (line) => ({ ...line, event: { ...line.event, user_id: "\ud800" } }),
  ];
  for (const [index, change] of changes.entries()) {
    const file = exported();
    file.entries[1] = change(file.entries[1]);
    const kinds = (await problemsOf(file)).map(([kind, seq]) => `${kind} ${seq}`);
    assert.ok(kinds.includes("entry_changed 2"), `${index}: ${kinds}`);
  }
  const file = exported();
  file.entries[3].event.user_id = "2";
  assert.deepEqual(await problemsOf(file), [["entry_changed", 4, "msg_2"]]);
});

test("entries and messages that are missing or inserted show", async () => {
  for (const at of [0, 1, 3]) {
    const file = exported();
    file.entries.splice(at, 1);
    const kinds = (await problemsOf(file)).map(([kind, seq]) => `${kind} ${seq}`);
    assert.ok(kinds.includes(`entry_missing ${at + 1}`), `${at}: ${kinds}`);
  }
  const twice = exported();
  twice.entries.splice(1, 0, twice.entries[0]);
  assert.ok((await problemsOf(twice)).some(([kind]) => kind === "entry_missing"));
  const file = exported();
  file.messages.splice(1, 1);
  assert.deepEqual(await problemsOf(file), [["message_missing", 2, "msg_2"]]);
  // Messages at the ends may have been written, or left out, by a later or an earlier reader.
  const cut = exported();
  cut.messages.splice(2, 1);
  const { absent, problems } = await checked(cut);
  assert.deepEqual([absent, problems], [1, []]);
});

test("a log whose hashes were computed anew differs from its signed head", async () => {
  const { note } = exported();
  const file = exported();
  file.entries[1].event.message.content = "other";
  file.entries = chained(
    file.entries.map(({ event_type, event, response_id }) => ({ event_type, event, response_id })),
  );
  assert.deepEqual(await problemsOf({ ...file, note }), [["checkpoint_changed", 4, undefined]]);
  // The server signs no further head of a log that was changed.
  assert.deepEqual(await problemsOf({ ...file, note: "" }), [["not_signed", 4, undefined]]);
});

test("what was erased or withheld is counted, and confirms nothing", async () => {
  const file = exported();
  const [, second] = file.entries;
  const { salt: _salt, ...left } = second.event.message;
  const digest = digestOf(second.event);
  file.entries[1] = { ...second, digest, event: { message: { ...left, content: "" } } };
  const edit = file.entries[3];
  file.entries[3] = {
    ...edit,
    digest: digestOf(edit.event),
    event: { message_id: "msg_2", revision: 1 },
  };
  const { problems, erased, unverified } = await checked(file);
  assert.deepEqual([problems, erased, unverified], [[], 2, 1]);
});

test("a deleted message needs its entry, and has no text", async () => {
  const deletion = { message_id: "msg_1", user_id: "1" };
  const entries = chained([created("msg_1", "one"), entry("message.deleted", deletion)]);
  const note = noteOf(2, entries[1].chain_hash);
  const erased = messageOf("msg_1", 1, "", { deleted_at: CREATED_AT });
  assert.deepEqual(await problemsOf({ messages: [erased], entries, note }), []);
  const still = { ...erased, content: "one" };
  const changed = [["message_changed", 1, "msg_1"]];
  assert.deepEqual(await problemsOf({ messages: [still], entries, note }), changed);
  const others = chained([created("msg_1", "one")]);
  const before = { entries: others, note: noteOf(1, others[0].chain_hash) };
  assert.deepEqual(await problemsOf({ messages: [erased], ...before }), changed);
});

test("a text that the log has a later state of is not verified", async () => {
  const unverifiedOf = async (file) => {
    const { problems, unverified } = await checked(file);
    assert.deepEqual(problems, []);
    return unverified;
  };
  const edited = exported();
  Object.assign(edited.messages[1], { content: "two", revision: 0 });
  assert.equal(await unverifiedOf(edited), 1);
  const deletion = { message_id: "msg_1", user_id: "1" };
  const entries = chained([created("msg_1", "one"), entry("message.deleted", deletion)]);
  const note = noteOf(2, entries[1].chain_hash);
  assert.equal(await unverifiedOf({ messages: [messageOf("msg_1", 1, "one")], entries, note }), 1);
  // Nothing is left of the text of a message that was erased.
  const digest = digestOf(entries[0].event);
  const left = { ...entries[0], digest, event: { message: { id: "msg_1" } } };
  const erased = { entries: [left], note: noteOf(1, left.chain_hash) };
  assert.equal(await unverifiedOf({ messages: [messageOf("msg_1", 1, "")], ...erased }), 0);
  assert.equal(await unverifiedOf({ messages: [messageOf("msg_1", 1, "one")], ...erased }), 1);
});

test("a signature that was taken from an answer shows", async () => {
  const more = { response_id: "resp_1" };
  const entries = chained([
    created("msg_1", "one", more),
    entry("response.done", { signature: "a.b.c" }, more),
  ]);
  const message = messageOf("msg_1", 1, "one", more);
  const file = { entries, note: noteOf(2, entries[1].chain_hash) };
  const kinds = async (signature) =>
    (await problemsOf({ messages: [{ ...message, signature }], ...file })).map(([kind]) => kind);
  assert.deepEqual(await kinds("a.b.c"), ["answer_changed"]);
  assert.deepEqual(await kinds(null), ["message_changed"]);
  assert.deepEqual(await kinds("a.b.d"), ["answer_changed", "message_changed"]);
});

test("entries older than the chain are counted, and later ones are checked", async () => {
  const file = exported({ start: 2 });
  const { problems, unchained } = await checked(file);
  assert.deepEqual([problems, unchained], [[], 2]);
  file.entries[2].event.message.content = "other";
  assert.equal((await problemsOf(file))[0][0], "entry_changed");
});

test("earlier versions of an answer are not missing from the file", async () => {
  const entries = chained([
    created("msg_1", "one"),
    created("msg_2", "first"),
    created("msg_3", "second", { version_of: "msg_2" }),
    created("msg_4", "last"),
  ]);
  const note = noteOf(4, entries[3].chain_hash);
  const [one, second, last] = [
    messageOf("msg_1", 1, "one"),
    messageOf("msg_3", 3, "second"),
    messageOf("msg_4", 4, "last"),
  ];
  assert.deepEqual(await problemsOf({ messages: [one, second, last], entries, note }), []);
  assert.equal((await checked({ messages: [one, second, last], entries, note })).absent, 0);
  const missing = [["message_missing", 3, "msg_3"]];
  assert.deepEqual(await problemsOf({ messages: [one, last], entries, note }), missing);
});

test("a message that the page shows is compared too", async () => {
  const shows = (message) => problemsOf(exported(), { shown: [message] });
  assert.deepEqual(await shows({ id: "msg_1", revision: 0, content: "one" }), []);
  const changed = [["message_changed", 1, "msg_1"]];
  assert.deepEqual(await shows({ id: "msg_1", revision: 0, content: "One" }), changed);
  // The first message of a thread is shown twice.
  const first = { id: "msg_1", revision: 0, content: "One" };
  assert.deepEqual(await problemsOf(exported(), { shown: [first, first] }), changed);
  assert.deepEqual(await shows({ id: "msg_2", revision: 1, content: "new" }), []);
  // The page may be behind, or ahead of the file.
  assert.deepEqual(await shows({ id: "msg_2", revision: 0, content: "two" }), []);
  assert.deepEqual(await shows({ id: "msg_2", revision: 2, content: "newer" }), []);
  assert.deepEqual(await shows({ id: "msg_9", revision: 0, content: "later" }), []);
});

test("at most a hundred problems are listed, and all are counted", async () => {
  const numbers = Array.from({ length: 150 }, (_, index) => index + 1);
  const entries = chained(numbers.map((n) => created(`msg_${n}`, "x")));
  const note = noteOf(150, entries.at(-1).chain_hash);
  const messages = numbers.map((n) => messageOf(`msg_${n}`, n, "y"));
  const { problems, problemCount } = await checked({ messages, entries, note });
  assert.deepEqual([problems.length, problemCount], [100, 150]);
});

test("times are those of entries", () => {
  assert.equal(millisecondsOf(CREATED_AT), 1_767_323_045_678);
  assert.equal(millisecondsOf("2026-01-02T03:04:05Z"), 1_767_323_045_000);
  assert.equal(JSON.stringify(millisecondsOf(null)), "null");
});
