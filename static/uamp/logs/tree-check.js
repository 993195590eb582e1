/**
 * Checks the tree of log heads as a server shows it now (docs/log-tree.md). In this order:
 *
 * 1. The newest checkpoint is signed with a published key of trees.
 * 2. It extends the checkpoint that this browser saw last.
 * 3. The proof shows that the head of the log is in a checkpoint of its server, signed likewise.
 * 4. The newest checkpoint extends that one.
 *
 * A server without checkpoints, and a head that is in none yet, are no problems: heads join the
 * tree later.
 */

import { isHash, isInTree, openCheckpoint, readProof } from "./checkpoints.js";
import { decoded } from "./notes.js";
import { isConsistent } from "./tree.js";

/**
 * @typedef {import("./checkpoints.js").TreeHead} TreeHead
 * @typedef {import("../types.js").PublishedKey} PublishedKey
 *
 * @typedef {object} TreeSource what a server publishes of its tree
 * @property {() => Promise<PublishedKey[]>} keys those that sign checkpoints
 * @property {() => Promise<string|null>} newest the newest checkpoint; null for none
 * @property {(from: number, to: number) => Promise<unknown[]|null>} consistency the hashes that
 *   prove that one size extends another, in base64; null if the server has no such proof
 *
 * @typedef {"tree_changed"|"tree_key_unknown"|"tree_rewritten"|"tree_proof_changed"}
 *   TreeProblemKind
 *
 * @typedef {object} TreeResult
 * @property {"included"|"pending"|"absent"|"wrong"} state `pending` if the head is in no checkpoint
 *   yet, `absent` if the server has none
 * @property {TreeProblemKind|null} problem the first one
 * @property {TreeHead|null} newest the newest checkpoint, if nothing is wrong with the tree
 */

/** @type {Record<import("./notes.js").NoteState, TreeProblemKind|null>} */
const PROBLEMS = {
  signed: null,
  // The browser compares the hashes all the same; the head of the log is not verified either.
  unsupported: null,
  changed: "tree_changed",
  unknown_key: "tree_key_unknown",
};

/** Something is wrong with the tree. */
class TreeProblem extends Error {
  /** @param {TreeProblemKind} kind */
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

/**
 * @param {object} shown
 * @param {import("./chain.js").LogHead|null} shown.head null for a log whose end is not signed
 * @param {string|null} shown.proof that of the head
 * @param {TreeHead|null} known the checkpoint that this browser saw last
 * @param {TreeSource} source
 * @returns {Promise<TreeResult>}
 */
export async function checkTree({ head, proof }, known, source) {
  try {
    return await stateOf({ head, proof }, known, source);
  } catch (error) {
    if (error instanceof TreeProblem) return { state: "wrong", problem: error.kind, newest: null };
    throw error;
  }
}

/**
 * @param {{head: import("./chain.js").LogHead|null, proof: string|null}} shown
 * @param {TreeHead|null} known
 * @param {TreeSource} source
 * @returns {Promise<TreeResult>}
 */
async function stateOf({ head, proof }, known, source) {
  const note = await source.newest();
  if (note === null) {
    if (known) throw new TreeProblem("tree_rewritten");
    if (head && proof) throw new TreeProblem("tree_proof_changed");
    return { state: "absent", problem: null, newest: null };
  }
  const keys = await source.keys();
  const newest = await opened(note, keys);
  if (known && !(await extend(known, newest, source))) throw new TreeProblem("tree_rewritten");
  if (!head || proof === null) return { state: "pending", problem: null, newest };
  const parts = readProof(proof);
  if (!parts) throw new TreeProblem("tree_proof_changed");
  const checkpoint = await opened(parts.note, keys);
  if (!(await isInTree(parts, head, checkpoint)) || !(await extend(checkpoint, newest, source)))
    throw new TreeProblem("tree_proof_changed");
  return { state: "included", problem: null, newest };
}

/** Open a checkpoint of the server. @param {string} note @param {PublishedKey[]} keys */
async function opened(note, keys) {
  const { state, head } = await openCheckpoint(note, keys);
  const kind = PROBLEMS[state];
  if (kind || !head) throw new TreeProblem(kind ?? "tree_changed");
  return head;
}

/** @param {TreeHead} checkpoint */
const treeOf = ({ size, root }) => ({ size, root: decoded(root) });

/**
 * Whether the newest checkpoint extends an earlier one.
 * @param {TreeHead} earlier
 * @param {TreeHead} newest
 * @param {TreeSource} source
 */
async function extend(earlier, newest, source) {
  const isGrown = earlier.size < newest.size;
  const hashes = isGrown ? await source.consistency(earlier.size, newest.size) : [];
  if (!hashes?.every(isHash)) return false;
  return isConsistent(hashes.map(decoded), treeOf(earlier), treeOf(newest));
}
