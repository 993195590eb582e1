/**
 * The hash chain of a chat's log and its signed head (docs/log-chain.md), by WebCrypto. Hashes are
 * lower-case hexadecimal digits, as exports have them. `uamp.logs` is the same in Python.
 */

import { canonical } from "../signatures.js";
import { decoded, encoded, hexOf, isCanonical, noteState, sha256 } from "./notes.js";

/**
 * @typedef {object} LogHead the signed head of a log
 * @property {string} server the address of the server without its scheme
 * @property {string} chatId
 * @property {number} seq its last entry
 * @property {string} chainHash of that entry
 * @property {number} at in seconds since 1970
 * @property {string} text what is signed
 *
 * @typedef {import("./notes.js").NoteState} HeadState
 */

const START = "uamp chat log 1";
/** The owner of the keys that sign heads. */
const OWNER = "log";
const MAX_CHARS = 2000;
const NOTE =
  /^(?<origin>(?<server>[^\s+]{1,500})\/chats\/(?<chatId>[A-Za-z0-9_-]{1,40}))\n(?<seq>0|[1-9][0-9]{0,15})\n(?<root>[A-Za-z0-9+/]{43}=)\ntime (?<at>0|[1-9][0-9]{0,15})\n\n\u2014 (?<name>[^\s+]+) (?<signature>[A-Za-z0-9+/]{91}=)\n$/;

/** @param {string} hex */
const bytesOf = (hex) =>
  Uint8Array.from({ length: hex.length / 2 }, (_, at) =>
    Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
  );

/** @param {string} text @returns {Promise<string>} */
const hashOfText = async (text) => hexOf(await sha256(encoded(text)));

/**
 * The hash of the canonical form of a value; null for a value without one, which no entry had when
 * it was written.
 * @param {unknown} value
 * @returns {Promise<string|null>}
 */
export async function hashOfValue(value) {
  let text;
  try {
    text = canonical(value);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
  return hashOfText(text);
}

/**
 * The hash of a message's content: its text and its items.
 * @param {{content?: string|null, content_items?: unknown[]|null}} message
 */
export const hashOfContent = ({ content, content_items: items }) =>
  hashOfValue([content || "", items ?? []]);

/**
 * The hash before the first entry of a chain.
 * @param {string} chatId
 * @param {number} seq of the last entry before it
 */
export const chainStart = (chatId, seq) => hashOfText(`${START}\n${chatId}\n${seq}\n`);

/**
 * The digest of an entry that the chain covers.
 * @param {{event_type: string, response_id: string, at: number}} entry its time in microseconds
 * @param {string} payload the hash of its event
 */
export const entryDigest = ({ event_type: type, response_id: responseId, at }, payload) =>
  hashOfText(`${type}\n${responseId}\n${at}\n${payload}\n`);

/**
 * The chain hash of an entry.
 * @param {string} previous the chain hash of the entry before it
 * @param {number} seq
 * @param {string} digest
 */
export async function chainHash(previous, seq, digest) {
  const bytes = new Uint8Array(72);
  bytes.set(bytesOf(previous));
  new DataView(bytes.buffer).setBigUint64(32, BigInt(seq));
  bytes.set(bytesOf(digest), 40);
  return hexOf(await sha256(bytes));
}

/**
 * Read a signed head (C2SP signed note) and verify its signature. `head` is null for a text that is
 * no head of a log.
 * @param {string} note
 * @param {import("../types.js").PublishedKey[]} keys those of the server
 * @returns {Promise<{state: HeadState, head: LogHead|null}>}
 */
export async function openHead(note, keys) {
  const parts = note.length <= MAX_CHARS ? NOTE.exec(note)?.groups : undefined;
  if (!parts || parts.name !== parts.origin || !isCanonical(parts.root, parts.signature))
    return { state: "changed", head: null };
  const { origin: name, server, chatId } = parts;
  const chain = hexOf(decoded(parts.root));
  const [seq, at] = [Number(parts.seq), Number(parts.at)];
  const text = `${name}\n${parts.seq}\n${parts.root}\ntime ${parts.at}\n`;
  const signed = { name, text, signatures: [decoded(parts.signature)] };
  const state = await noteState(signed, keys, OWNER);
  return { state, head: { server, chatId, seq, chainHash: chain, at, text } };
}
