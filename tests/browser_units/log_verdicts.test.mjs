import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { inspect } from "node:util";
import { factsOf, gapsOf, verdictText } from "../../static/chat/dialogs/verify-words.js";
import { ChatCheck } from "../../static/uamp/logs/chat-check.js";
import {
  CHAT,
  KEYS,
  chained,
  checked,
  created,
  digestOf,
  entry,
  exported,
  linesOf,
  messageOf,
  noteOf,
} from "./exported_logs.mjs";

const { subtle } = crypto;
const { importKey } = subtle;
afterEach(() => {
  subtle.importKey = importKey;
});

/** Check a file in which nothing was changed, but not everything can be verified. */
async function gapsIn(file) {
  const result = await checked(file);
  assert.deepEqual([result.verdict, result.problems], ["incomplete", []]);
  assert.equal(verdictText(result), "No change was found, but not everything could be verified.");
  return gapsOf(result);
}

const REMOVED = (n) =>
  `Messages that the log has and the chat doesn't: ${n}. They were removed, or written during this check: verify again.`;
const UNCONFIRMED = (n) => `Messages that the log can't confirm: ${n}.`;
const OLDER = (n) => `Entries older than the hash chain, which can't be verified: ${n}.`;
const NO_HEAD = "The server hasn't signed the end of the log.";

test("nothing was changed if all of a log is signed, and confirms each message", async () => {
  const result = await checked(exported());
  assert.deepEqual([result.verdict, verdictText(result)], ["unchanged", "Nothing was changed."]);
  assert.deepEqual(gapsOf(result), []);
  assert.match(factsOf(result).at(-1), /^chat\.example\.com signed the end of the log on /);
});

test("a problem is the verdict, whatever else could not be verified", async () => {
  const file = exported();
  file.messages[0].content = "other";
  file.messages.splice(1, 2);
  const result = await checked(file);
  assert.deepEqual([result.verdict, result.absent], ["changed", 2]);
  assert.equal(verdictText(result), "1 problem was found.");
  assert.deepEqual(gapsOf(result), [REMOVED(2)]);
});

test("messages that are removed from the ends of a chat are not verified", async () => {
  for (const [at, count] of [
    [0, 1],
    [2, 1],
    [0, 3],
  ]) {
    const file = exported();
    file.messages.splice(at, count);
    assert.deepEqual(await gapsIn(file), [REMOVED(count)]);
  }
});

test("a text of which only a digest is left is not verified", async () => {
  const file = exported();
  const [first] = file.entries;
  file.entries[0] = { ...first, digest: digestOf(first.event) };
  assert.deepEqual(await gapsIn(file), [UNCONFIRMED(1)]);
});

test("a log without its chain, or without its entries, proves nothing", async () => {
  const file = exported();
  const entries = file.entries.map((line) => ({ ...line, chain_hash: null }));
  assert.deepEqual(await gapsIn({ ...file, entries, note: "" }), [NO_HEAD, OLDER(4)]);
  assert.deepEqual(await gapsIn({ ...file, entries: [], note: "" }), [NO_HEAD, UNCONFIRMED(3)]);
  const note = noteOf(0, "0".repeat(64));
  assert.deepEqual(await gapsIn({ ...file, entries: [], note }), [UNCONFIRMED(3)]);
  // Beside a problem that says so, there is no gap.
  const result = await checked({ ...file, note: "" });
  assert.deepEqual([result.problems[0].kind, gapsOf(result)], ["not_signed", []]);
});

test("entries older than the chain are not verified", async () => {
  assert.deepEqual(await gapsIn(exported({ start: 2 })), [OLDER(2)]);
  // A text that no entry has was not written before the chain, either.
  const file = exported({ start: 2 });
  file.messages[0].content = "other";
  assert.deepEqual(await gapsIn(file), [UNCONFIRMED(1), OLDER(2)]);
});

test("a message that only the page shows is not verified", async () => {
  const file = { messages: [], entries: [], note: noteOf(0, "0".repeat(64)) };
  const shown = [{ id: "msg_1", revision: 0, content: "one" }];
  const { verdict, unverified } = await checked(file, { shown });
  assert.deepEqual([verdict, unverified], ["incomplete", 1]);
  const newer = await checked(exported(), { shown: [{ id: "msg_2", revision: 2, content: "x" }] });
  assert.deepEqual([newer.verdict, newer.unverified], ["incomplete", 1]);
});

test("entries after the signed head are not verified", async () => {
  const file = exported();
  const note = noteOf(3, file.entries[2].chain_hash);
  assert.deepEqual(await gapsIn({ ...file, note }), [
    "Entries written since the end of the log was signed: 1.",
  ]);
});

test("a browser without an algorithm says so", async () => {
  subtle.importKey = async () => {
    throw new DOMException("Unrecognized name.", "NotSupportedError");
  };
  assert.deepEqual(await gapsIn(exported()), [
    "This browser can't verify the signature on the end of the log.",
  ]);
});

test("signatures of answers and receipts that a browser cannot verify are counted", async () => {
  const result = await checked(exported());
  const gaps = gapsOf({ ...result, answers: { unsupported: 2 }, receipts: { unsupported: 1 } });
  assert.deepEqual(gaps, ["Signatures that this browser can't verify: 3."]);
});

test("a check keeps neither texts nor signatures", async () => {
  const answer = { response_id: "resp_1" };
  const [text, signature] = ["a text to forget", "e30.e30.forgotten"];
  const entries = chained([
    created("msg_1", text),
    created("msg_2", text, answer),
    entry("response.done", { signature }, answer),
    entry("message.edited", { message_id: "msg_1", revision: 1, content: text, user_id: "1" }),
  ]);
  const messages = [
    messageOf("msg_1", 1, text, { revision: 1, salt: "a salt to forget" }),
    messageOf("msg_2", 2, text, { ...answer, signature }),
  ];
  const check = new ChatCheck(CHAT, KEYS);
  for (const line of linesOf({ messages, entries, note: noteOf(4, entries[3].chain_hash) }))
    await check.add([line]);
  const kept = inspect(check, { depth: 20, maxArrayLength: null, maxStringLength: null });
  assert.match(kept, /msg_2/);
  assert.doesNotMatch(kept, /forget|forgotten/);
});
