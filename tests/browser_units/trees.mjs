/** Trees of log heads by node's own crypto and the recursive definitions of RFC 9162 §2.1. */

import { createHash, generateKeyPairSync, sign } from "node:crypto";

export const SERVER = "chat.example.com";
export const ORIGIN = `${SERVER}/log-tree`;

const sha256 = (...parts) =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();
const half = (count) => 2 ** (Math.ceil(Math.log2(count)) - 1);

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
export const TREE_KEY = {
  ...publicKey.export({ format: "jwk" }),
  kid: "t",
  alg: "EdDSA",
  uamp_owner: "tree",
};

function rootOf(texts) {
  if (texts.length === 1) return sha256([0], texts[0]);
  const middle = half(texts.length);
  return sha256([1], rootOf(texts.slice(0, middle)), rootOf(texts.slice(middle)));
}

function inclusion(texts, index) {
  if (texts.length === 1) return [];
  const middle = half(texts.length);
  const [left, right] = [texts.slice(0, middle), texts.slice(middle)];
  return index < middle
    ? [...inclusion(left, index), rootOf(right)]
    : [...inclusion(right, index - middle), rootOf(left)];
}

function consistency(texts, first, isWhole = true) {
  if (first === texts.length) return isWhole ? [] : [rootOf(texts)];
  const middle = half(texts.length);
  const [left, right] = [texts.slice(0, middle), texts.slice(middle)];
  return first <= middle
    ? [...consistency(left, first, isWhole), rootOf(right)]
    : [...consistency(right, first - middle, false), rootOf(left)];
}

const base64 = (hash) => hash.toString("base64");

/** A checkpoint of a tree with these leaves. */
export function checkpointOf(texts, { origin = ORIGIN, size = texts.length } = {}) {
  const text = `${origin}\n${size}\n${base64(rootOf(texts))}\n`;
  const id = sha256(`${origin}\n`, [1], Buffer.from(TREE_KEY.x, "base64url")).subarray(0, 4);
  const signature = Buffer.concat([id, sign(null, Buffer.from(text), privateKey)]);
  return `${text}\n\u2014 ${origin} ${base64(signature)}\n`;
}

/** A checkpoint as a browser keeps it. */
export const knownOf = (texts) => ({
  origin: ORIGIN,
  size: texts.length,
  root: base64(rootOf(texts)),
  at: 1_767_323_045_000,
});

/** The proof that a leaf is in a tree. */
export const proofOf = (texts, index, note = checkpointOf(texts)) =>
  [
    "c2sp.org/tlog-proof@v1",
    `index ${index}`,
    ...inclusion(texts, index).map(base64),
    "",
    note,
  ].join("\n");

/** What a server with these leaves publishes, and the paths that are read. */
export function sourceOf(texts, more = {}) {
  const paths = [];
  return {
    paths,
    keys: async () => [TREE_KEY],
    newest: async () => checkpointOf(texts),
    consistency: async (from, to) => {
      paths.push([from, to]);
      return consistency(texts.slice(0, to), from).map(base64);
    },
    ...more,
  };
}
