/**
 * Checkpoints of a server's tree of log heads, and the proof that a head is in one
 * (docs/log-tree.md). `uamp.transparency` is the same in Python.
 */

import { decoded, isCanonical, noteState } from "./notes.js";
import { isIncluded, leafHash } from "./tree.js";

/**
 * @typedef {import("./chain.js").LogHead} LogHead
 * @typedef {import("./notes.js").Bytes} Bytes
 * @typedef {import("./notes.js").NoteState} NoteState
 * @typedef {import("../types.js").PublishedKey} PublishedKey
 *
 * @typedef {object} TreeHead a checkpoint without its signatures
 * @property {string} origin the name of the tree
 * @property {number} size the number of its leaves
 * @property {string} root in base64
 *
 * @typedef {object} TreeProof
 * @property {number} index
 * @property {Bytes[]} path
 * @property {string} note the checkpoint
 */

/** The owner of the keys that sign checkpoints. */
const OWNER = "tree";
/** The path of the tree below the address of its server. */
const PATH = "log-tree";
const PROOF = "c2sp.org/tlog-proof@v1";
const NOTE_CHARS = 10_000;
const SIGNATURES = 32;
const LEVELS = 63;
const PROOF_CHARS = NOTE_CHARS + 50 * LEVELS;
const TEXT = /^(?<origin>[^\s+]{1,500})\n(?<size>[1-9][0-9]{0,14})\n(?<root>[A-Za-z0-9+/]{43}=)\n$/;
const LINE = /^\u2014 (?<name>[^\s+]{1,300}) (?<signature>[A-Za-z0-9+/]{8,500}={0,2})$/;
const INDEX = /^index (0|[1-9][0-9]{0,14})$/;
const HASH = /^[A-Za-z0-9+/]{43}=$/;

/** @param {unknown} text a hash in base64 @returns {text is string} */
export const isHash = (text) => typeof text === "string" && HASH.test(text) && isCanonical(text);

/** A text and what follows its first empty line. @param {string} text @returns {[string, string]} */
function halves(text) {
  const at = text.indexOf("\n\n");
  return at < 0 ? [text, ""] : [text.slice(0, at + 1), text.slice(at + 2)];
}

/**
 * Read a checkpoint and verify the server's signature. `head` is null for a text that is no
 * checkpoint. The lines of witnesses are not verified.
 * @param {string} note
 * @param {PublishedKey[]} keys those of the server
 * @returns {Promise<{state: NoteState, head: TreeHead|null}>}
 */
export async function openCheckpoint(note, keys) {
  const [text, signatures] = halves(note);
  const parts = note.length <= NOTE_CHARS ? TEXT.exec(text)?.groups : undefined;
  const lines = signatures.split("\n");
  const found = lines.slice(0, -1).map((line) => LINE.exec(line)?.groups);
  const isNote = lines.at(-1) === "" && found.length > 0 && found.length <= SIGNATURES;
  if (!parts || !isNote || !isHash(parts.root)) return { state: "changed", head: null };
  const own = [];
  for (const line of found) {
    if (!line || !isCanonical(line.signature)) return { state: "changed", head: null };
    if (line.name === parts.origin) own.push(decoded(line.signature));
  }
  const { origin, root } = parts;
  const state = await noteState({ name: origin, text, signatures: own }, keys, OWNER);
  return { state, head: { origin, size: Number(parts.size), root } };
}

/**
 * Read a proof (C2SP tlog-proof); null for another text.
 * @param {string} text
 * @returns {TreeProof|null}
 */
export function readProof(text) {
  const [before, note] = halves(text);
  const [first, second, ...hashes] = before.split("\n").slice(0, -1);
  const index = INDEX.exec(second ?? "")?.[1];
  const isProof = text.length <= PROOF_CHARS && first === PROOF && hashes.every(isHash);
  if (!isProof || !index || !note) return null;
  return { index: Number(index), path: hashes.map(decoded), note };
}

/**
 * Whether a proof shows that a log head is in a checkpoint of its server.
 * @param {TreeProof} proof
 * @param {LogHead} head
 * @param {TreeHead} checkpoint the one of the proof
 */
export async function isInTree({ index, path }, head, { origin, size, root }) {
  if (origin !== `${head.server}/${PATH}`) return false;
  return isIncluded(await leafHash(head.text), path, { index, size, root: decoded(root) });
}
