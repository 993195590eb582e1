/** Logs of a chat as an export has them, by node's own crypto, and what the pages find in them. */

import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { ChatCheck } from "../../static/uamp/logs/chat-check.js";
import { canonical } from "../../static/uamp/signatures.js";

export const CHAT = "chat_a";
export const AT = 1_767_323_045_678_901;
export const CREATED_AT = "2026-01-02T03:04:05.678901Z";
export const ORIGIN = `chat.example.com/chats/${CHAT}`;

// The hashes as docs/log-chain.md spells them, by node's own crypto.
const sha256 = (...parts) =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const seqBytes = (seq) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(seq));
  return bytes;
};
export const digestOf = (event) => sha256(canonical(event)).toString("hex");

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
export const LOG_KEY = {
  ...publicKey.export({ format: "jwk" }),
  kid: "l",
  alg: "EdDSA",
  uamp_owner: "log",
};

/** A signed head (C2SP signed note). */
export function noteOf(seq, hash, origin = ORIGIN) {
  const text = `${origin}\n${seq}\n${Buffer.from(hash, "hex").toString("base64")}\ntime 1767323045\n`;
  const key = Buffer.from(LOG_KEY.x, "base64url");
  const id = sha256(`${origin}\n`, Buffer.from([1]), key).subarray(0, 4);
  const signature = Buffer.concat([id, sign(null, Buffer.from(text), privateKey)]);
  return `${text}\n\u2014 ${origin} ${signature.toString("base64")}\n`;
}

/** An entry with the members of an export, before it is chained. */
export const entry = (event_type, event, more = {}) => ({
  event_type,
  event,
  response_id: "",
  ...more,
});
export const created = (id, content, more = {}) =>
  entry("message.created", {
    message: {
      id,
      role: "user",
      content,
      name: "alice",
      sender_kind: "user",
      sender_id: "1",
      created_at: 1_767_323_045_678,
      salt: `salt of ${id}`,
      ...more,
    },
  });
export const messageOf = (id, seq, content, more = {}) => ({
  type: "message",
  id,
  seq,
  role: "user",
  name: "alice",
  sender_kind: "user",
  sender_id: "1",
  content,
  content_items: null,
  created_at: CREATED_AT,
  response_id: null,
  status: "completed",
  reply_to: null,
  thread: null,
  also_in_chat: false,
  copied_from: null,
  revision: 0,
  deleted_at: null,
  ...more,
});

/** Entries as lines of an export; those after `start` are in the chain. */
export function chained(entries, start = 0) {
  let previous = sha256(`uamp chat log 1\n${CHAT}\n${start}\n`);
  return entries.map((line, index) => {
    const seq = index + 1;
    if (seq <= start) return { type: "entry", seq, at: AT, chain_hash: null, ...line };
    const payload = line.digest ?? digestOf(line.event);
    const lines = `${line.event_type}\n${line.response_id}\n${AT}\n${payload}\n`;
    previous = sha256(previous, seqBytes(seq), sha256(lines));
    return { type: "entry", seq, at: AT, chain_hash: previous.toString("hex"), ...line };
  });
}

/** An export with three messages, the second of which was edited. */
export function exported({ start = 0 } = {}) {
  const edit = { message_id: "msg_2", revision: 1, content: "new", user_id: "1" };
  const entries = chained(
    [
      created("msg_1", "one"),
      created("msg_2", "two"),
      created("msg_3", "three", { thread: "msg_1", also_in_chat: true }),
      entry("message.edited", edit),
    ],
    start,
  );
  return {
    messages: [
      messageOf("msg_1", 1, "one"),
      messageOf("msg_2", 2, "new", { revision: 1 }),
      messageOf("msg_3", 3, "three", { thread: "msg_1", also_in_chat: true }),
    ],
    entries,
    note: noteOf(entries.length, entries.at(-1).chain_hash),
  };
}

export const linesOf = ({ messages, entries, note, proof = null }) => [
  { type: "chat", id: CHAT },
  ...messages,
  ...(note ? [{ type: "checkpoint", note, tree: proof }] : []),
  ...entries,
  { type: "end", count: messages.length },
];

export const KEYS = { of: async () => [], ofLogs: async () => [LOG_KEY] };

export async function checked(file, { shown, keys = KEYS, batch = 2, known, tree } = {}) {
  const check = new ChatCheck(CHAT, keys, { known, tree });
  const lines = linesOf(file);
  for (let at = 0; at < lines.length; at += batch) await check.add(lines.slice(at, at + batch));
  return check.finish(shown);
}
export const problemsOf = async (file, options) =>
  (await checked(file, options)).problems.map(({ kind, seq, messageId }) => [kind, seq, messageId]);
