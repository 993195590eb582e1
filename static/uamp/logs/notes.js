/**
 * Hashes, and signed notes with Ed25519 keys (C2SP signed-note), by WebCrypto.
 */

/** @typedef {import("../types.js").PublishedKey} PublishedKey */
/** @typedef {Uint8Array<ArrayBuffer>} Bytes */

/**
 * @typedef {"signed"|"changed"|"unknown_key"|"unsupported"} NoteState `unsupported` where this
 *   browser does not know Ed25519
 */

const KEY_ID_BYTES = 4;
const ED25519 = 1;

const ENCODER = new TextEncoder();

/** @param {string} text @returns {Bytes} */
export const encoded = (text) => ENCODER.encode(text);

/** @param {Bytes} bytes @returns {Promise<Bytes>} */
export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** @param {Uint8Array} bytes */
export const hexOf = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text in base64 @returns {Bytes} */
export const decoded = (text) =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Whether texts are base64 in its one spelling. @param {...string} texts */
export function isCanonical(...texts) {
  try {
    return texts.every((text) => btoa(atob(text)) === text);
  } catch (error) {
    if (error instanceof DOMException) return false;
    throw error;
  }
}

/**
 * Verify a note with the published keys of an owner.
 * @param {object} note
 * @param {string} note.name of the key
 * @param {string} note.text the signed text
 * @param {Bytes[]} note.signatures those of this name, each after the id of its key
 * @param {PublishedKey[]} keys
 * @param {string} owner
 * @returns {Promise<NoteState>}
 */
export async function noteState({ name, text, signatures }, keys, owner) {
  const byId = new Map(signatures.map((raw) => [hexOf(raw.subarray(0, KEY_ID_BYTES)), raw]));
  for (const { kty, crv, x, uamp_owner: keyOwner = owner } of keys) {
    if (keyOwner !== owner || kty !== "OKP" || crv !== "Ed25519" || !x) continue;
    const key = decoded(x.replaceAll("-", "+").replaceAll("_", "/"));
    const signature = byId.get(await keyId(name, key))?.slice(KEY_ID_BYTES);
    if (!signature) continue;
    try {
      const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
      const isSigned = await crypto.subtle.verify("Ed25519", imported, signature, encoded(text));
      return isSigned ? "signed" : "changed";
    } catch (error) {
      if (error instanceof DOMException && error.name === "NotSupportedError") return "unsupported";
      throw error;
    }
  }
  return "unknown_key";
}

/** The id of a named Ed25519 key. @param {string} name @param {Bytes} key */
async function keyId(name, key) {
  const bytes = Uint8Array.of(...encoded(`${name}\n`), ED25519, ...key);
  return hexOf((await sha256(bytes)).subarray(0, KEY_ID_BYTES));
}
