/**
 * Prints what the modules of the pages find in proofs and notes of the tree: it reads a JSON array
 * of them from standard input.
 */

import { readFileSync } from "node:fs";
import { isInTree, openCheckpoint, readProof } from "../../../static/uamp/logs/checkpoints.js";
import { decoded } from "../../../static/uamp/logs/notes.js";
import { isConsistent } from "../../../static/uamp/logs/tree.js";

const KINDS = {
  async inclusion({ text, server, proof }) {
    const parts = readProof(proof);
    const { head } = await openCheckpoint(parts?.note ?? "", []);
    return head !== null && (await isInTree(parts, { text, server }, head));
  },
  consistency({ from, to, hashes, roots }) {
    const [first, second] = [from, to].map((size, at) => ({ size, root: decoded(roots[at]) }));
    return isConsistent(hashes.map(decoded), first, second);
  },
  note: async ({ note, key }) => (await openCheckpoint(note, [key])).state === "signed",
};

const documents = JSON.parse(readFileSync(0, "utf-8"));
const results = [];
for (const document of documents) results.push(await KINDS[document.kind](document));
console.log(JSON.stringify(results));
