/**
 * The arithmetic of a Merkle tree over SHA-256 (RFC 9162 §2.1). Sizes may be larger than the
 * integers of bitwise operators. `uamp.transparency.tree` is the same in Python.
 */

import { encoded, hexOf, sha256 } from "./notes.js";

/** @typedef {import("./notes.js").Bytes} Bytes */

const LEAF = 0;
const INNER = 1;

/** The hash of a leaf. @param {string} text */
export const leafHash = (text) => sha256(Uint8Array.of(LEAF, ...encoded(text)));

/** @param {Bytes} left @param {Bytes} right */
const nodeHash = (left, right) => sha256(Uint8Array.of(INNER, ...left, ...right));

/** @param {Bytes} one @param {Bytes} other */
const isSame = (one, other) => hexOf(one) === hexOf(other);

/** @param {number} place */
const half = (place) => Math.floor(place / 2);

/**
 * Whether a path proves that a leaf with this hash is in a tree (§2.1.3.2).
 * @param {Bytes} leaf
 * @param {Bytes[]} path
 * @param {{index: number, size: number, root: Bytes}} tree
 */
export async function isIncluded(leaf, path, { index, size, root }) {
  if (index >= size) return false;
  let [node, place, last] = [leaf, index, size - 1];
  for (const sibling of path) {
    if (last === 0) return false;
    if (place % 2 || place === last) {
      node = await nodeHash(sibling, node);
      while (place % 2 === 0 && place) [place, last] = [half(place), half(last)];
    } else node = await nodeHash(node, sibling);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(node, root);
}

/**
 * Whether a path proves that the first tree is the beginning of the second one (§2.1.4.2). Neither
 * is empty.
 * @param {Bytes[]} path
 * @param {{size: number, root: Bytes}} first
 * @param {{size: number, root: Bytes}} second
 */
export async function isConsistent(path, first, second) {
  if (first.size > second.size) return false;
  if (first.size === second.size) return path.length === 0 && isSame(first.root, second.root);
  let [place, last] = [first.size - 1, second.size - 1];
  while (place % 2) [place, last] = [half(place), half(last)];
  // The root of a tree whose size is a power of two is a node of every later one.
  const [start, ...siblings] = place === 0 ? [first.root, ...path] : path;
  let [before, after] = [start, start];
  for (const sibling of siblings) {
    if (last === 0) return false;
    if (place % 2 || place === last) {
      before = await nodeHash(sibling, before);
      after = await nodeHash(sibling, after);
      while (place % 2 === 0 && place) [place, last] = [half(place), half(last)];
    } else after = await nodeHash(after, sibling);
    [place, last] = [half(place), half(last)];
  }
  return last === 0 && isSame(before, first.root) && isSame(after, second.root);
}
