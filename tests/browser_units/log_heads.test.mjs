import assert from "node:assert/strict";
import { test } from "node:test";
import { openHead } from "../../static/uamp/logs/chain.js";
import { BadExport, ChatCheck } from "../../static/uamp/logs/chat-check.js";
import { LostStream, batchesOf } from "../../static/uamp/logs/lines.js";
import {
  CHAT,
  KEYS,
  LOG_KEY,
  ORIGIN,
  exported,
  linesOf,
  noteOf,
  problemsOf,
} from "./exported_logs.mjs";

test("a head is verified with the keys of logs", async () => {
  const { note } = exported();
  const stateOf = async (text, keys = [LOG_KEY]) => (await openHead(text, keys)).state;
  assert.equal(await stateOf(note), "signed");
  const { head } = await openHead(note, [LOG_KEY]);
  assert.deepEqual([head.chatId, head.seq, head.at], [CHAT, 4, 1_767_323_045]);
  assert.equal(await stateOf(note.replace("\n4\n", "\n5\n")), "changed");
  assert.equal(await stateOf(note.replace("time 1", "time 2")), "changed");
  assert.equal(await stateOf(`${note}\n`), "changed");
  assert.equal(await stateOf(note.replaceAll(CHAT, "chat_b")), "unknown_key");
  assert.equal(await stateOf("x".repeat(3000)), "changed");
  const line = note.split("\n")[5];
  assert.equal(await stateOf(note.replace(line, line.replace(ORIGIN, "other"))), "changed");
  // Base64 has one spelling: the last letter has bits that no byte has.
  const last = note.split("\n")[2].at(-2);
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const other = alphabet[alphabet.indexOf(last) ^ 1];
  assert.equal(await stateOf(note.replace(`${last}=\ntime`, `${other}=\ntime`), []), "changed");
  assert.equal(await stateOf(note, []), "unknown_key");
  for (const other of [{ uamp_owner: "tree" }, { kty: "EC" }, { crv: "X25519" }, { x: undefined }])
    assert.equal(await stateOf(note, [{ ...LOG_KEY, ...other }]), "unknown_key");
  const file = exported();
  const problems = async (more, keys) => (await problemsOf({ ...file, ...more }, { keys }))[0][0];
  assert.equal(await problems({ note: note.replace("time 1", "time 2") }), "head_changed");
  assert.equal(await problems({}, { ...KEYS, ofLogs: async () => [] }), "head_key_unknown");
  const hash = file.entries.at(-1).chain_hash;
  const foreign = noteOf(4, hash, "chat.example.com/chats/chat_b");
  assert.equal(await problems({ note: foreign }), "head_changed");
});

test("a file that is cut off, out of order or of another chat is refused", async () => {
  const whole = linesOf(exported());
  const refused = async (lines) => {
    const check = new ChatCheck(CHAT, KEYS);
    await assert.rejects(async () => {
      await check.add(lines);
      await check.finish();
    }, BadExport);
  };
  await refused([]);
  await refused(whole.slice(0, -1));
  await refused([...whole, whole[1]]);
  await refused([...whole, whole.at(-1)]);
  await refused([...whole, whole[0]]);
  await refused([{ type: "chat", id: "chat_b" }, ...whole.slice(1)]);
  await refused([...whole.slice(0, -1), { type: "end", count: 2 }]);
  await refused([...whole.slice(0, -1), whole[1], { type: "end", count: 4 }]);
  await refused([...whole.slice(0, -1), whole[4], { type: "end", count: 3 }]);
  await refused([whole[0], { type: "other" }, ...whole.slice(1)]);
});

test("lines are read from a stream however it is cut", async () => {
  const text = '{"a":"é"}\n{"a":2}\n\n{"a":3}\n';
  const bytes = new TextEncoder().encode(text);
  const streamOf = (size, end = bytes.length) =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < end; at += size)
          controller.enqueue(bytes.slice(at, Math.min(at + size, end)));
        controller.close();
      },
    });
  for (const size of [1, 3, 7, 100]) {
    const lines = (await Array.fromAsync(batchesOf(streamOf(size)))).flat();
    assert.deepEqual(lines, [{ a: "é" }, { a: 2 }, { a: 3 }]);
  }
  await assert.rejects(Array.fromAsync(batchesOf(streamOf(4, bytes.length - 3))), SyntaxError);
  // Cut within a character.
  await assert.rejects(Array.fromAsync(batchesOf(streamOf(4, 7))), SyntaxError);
});

test("a connection that is lost is not a file that was cut off", async () => {
  const lines = batchesOf(
    new ReadableStream({
      pull(controller) {
        controller.error(new TypeError("network error"));
      },
    }),
  );
  await assert.rejects(lines.next(), LostStream);
});

test("a long line is searched for its end once", async () => {
  const part = new TextEncoder().encode("x".repeat(1000));
  const parts = Array.from({ length: 500 }, () => part);
  const [quote, end] = [new Uint8Array([0x22]), new Uint8Array([0x22, 0x0a])];
  const stream = ReadableStream.from([quote, ...parts, end]);
  const { split, lastIndexOf } = String.prototype;
  let searched = 0;
  const counted = (search) =>
    function count(...options) {
      searched += this.length;
      return search.apply(this, options);
    };
  String.prototype.split = counted(split);
  String.prototype.lastIndexOf = counted(lastIndexOf);
  try {
    const [[line]] = await Array.fromAsync(batchesOf(stream));
    assert.equal(line.length, 500_000);
  } finally {
    Object.assign(String.prototype, { split, lastIndexOf });
  }
  assert.ok(searched < 1_100_000, `${searched}`);
});
