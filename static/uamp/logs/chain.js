/**
 * The hash chain of a chat's log and its signed head (docs/log-chain.md), by WebCrypto. Hashes are
 * lower-case hexadecimal digits, as exports have them. `uamp.logs` is the same in Python.
 */

import { canonical } from "../signatures.js";

/** @typedef {import("../types.js").PublishedKey} PublishedKey */

/**
 * @typedef {object} LogHead the signed head of a log
 * @property {string} server the address of the server without its scheme
 * @property {string} chatId
 * @property {number} seq its last entry
 * @property {string} chainHash of that entry
 * @property {number} at in seconds since 1970
 *
 * @typedef {"signed"|"changed"|"unknown_key"|"unsupported"} HeadState `unsupported` where this
 *   browser does not know Ed25519
 */

const START = "uamp chat log 1";
/** The owner of the keys that sign heads. */
const OWNER = "log";
const MAX_CHARS = 2000;
const NOTE =
  /^(?<origin>(?<server>[^\s+]{1,500})\/chats\/(?<chatId>[A-Za-z0-9_-]{1,40}))\n(?<seq>0|[1-9][0-9]{0,15})\n(?<root>[A-Za-z0-9+/]{43}=)\ntime (?<at>0|[1-9][0-9]{0,15})\n\n\u2014 (?<name>[^\s+]+) (?<signature>[A-Za-z0-9+/]{91}=)\n$/;
const KEY_ID_BYTES = 4;
const ED25519 = 1;

const ENCODER = new TextEncoder();

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} hex */
const bytesOf = (hex) =>
  Uint8Array.from({ length: hex.length / 2 }, (_, at) =>
    Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
  );

/** @param {string} text in base64 */
const decoded = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {string} text @returns {Promise<string>} */
const hashOfText = async (text) => hexOf(await sha256(ENCODER.encode(text)));

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
 * @param {PublishedKey[]} keys those of the server
 * @returns {Promise<{state: HeadState, head: LogHead|null}>}
 */
export async function openHead(note, keys) {
  const parts = note.length <= MAX_CHARS ? NOTE.exec(note)?.groups : undefined;
  if (!parts || parts.name !== parts.origin || !isCanonical(parts.root, parts.signature))
    return { state: "changed", head: null };
  const { origin, server, chatId } = parts;
  const chain = hexOf(decoded(parts.root));
  const [seq, at] = [Number(parts.seq), Number(parts.at)];
  const head = { server, chatId, seq, chainHash: chain, at };
  const signed = ENCODER.encode(`${origin}\n${parts.seq}\n${parts.root}\ntime ${parts.at}\n`);
  return { state: await stateOf(origin, signed, decoded(parts.signature), keys), head };
}

/** @param {...string} texts in base64 */
const isCanonical = (...texts) => texts.every((text) => btoa(atob(text)) === text);

/**
 * @param {string} name of the key in the note
 * @param {Uint8Array<ArrayBuffer>} signed
 * @param {Uint8Array<ArrayBuffer>} signature after the id of its key
 * @param {PublishedKey[]} keys
 * @returns {Promise<HeadState>}
 */
async function stateOf(name, signed, signature, keys) {
  const id = hexOf(signature.subarray(0, KEY_ID_BYTES));
  for (const { kty, crv, x, uamp_owner: owner = OWNER } of keys) {
    if (owner !== OWNER || kty !== "OKP" || crv !== "Ed25519" || !x) continue;
    const key = decoded(x.replaceAll("-", "+").replaceAll("_", "/"));
    if ((await keyId(name, key)) !== id) continue;
    try {
      const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
      const mark = signature.slice(KEY_ID_BYTES);
      return (await crypto.subtle.verify("Ed25519", imported, mark, signed)) ? "signed" : "changed";
    } catch (error) {
      if (error instanceof DOMException && error.name === "NotSupportedError") return "unsupported";
      throw error;
    }
  }
  return "unknown_key";
}

/** The id of a named Ed25519 key. @param {string} name @param {Uint8Array} key */
async function keyId(name, key) {
  const bytes = Uint8Array.of(...ENCODER.encode(`${name}\n`), ED25519, ...key);
  return hexOf((await sha256(bytes)).subarray(0, KEY_ID_BYTES));
}
