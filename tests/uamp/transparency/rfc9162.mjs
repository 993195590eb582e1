// Verifies proofs of the tree by node's crypto and the recursive definitions of RFC 9162 §2.1, and
// signed notes by the text of C2SP. It shares no code with the server.
import { createHash, createPublicKey, verify } from "node:crypto";

const sha256 = (...parts) =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();
const parent = (left, right) => sha256([1], left, right);
const half = (count) => 2 ** (Math.ceil(Math.log2(count)) - 1);

function rootOf(leaf, index, size, path) {
  if (size === 1) return leaf;
  const [middle, sibling] = [half(size), path.pop()];
  if (index < middle) return parent(rootOf(leaf, index, middle, path), sibling);
  return parent(sibling, rootOf(leaf, index - middle, size - middle, path));
}

function rootsOf(first, second, path, known) {
  if (first === second) {
    const root = known ?? path.pop();
    return [root, root];
  }
  const [middle, sibling] = [half(second), path.pop()];
  if (first <= middle) {
    const [before, after] = rootsOf(first, middle, path, known);
    return [before, parent(after, sibling)];
  }
  return rootsOf(first - middle, second - middle, path, null).map((root) => parent(sibling, root));
}

function signed(note, name, key, kind) {
  const [text, lines] = note.split("\n\n");
  const body = `${text}\n`;
  for (const line of lines.trimEnd().split("\n")) {
    const [dash, signer, encoded] = line.split(" ");
    const raw = Buffer.from(encoded, "base64");
    const id = sha256(`${name}\n`, [kind], Buffer.from(key.x, "base64url")).subarray(0, 4);
    if (dash !== "—" || signer !== name || !raw.subarray(0, 4).equals(id)) continue;
    const made = createPublicKey({ key, format: "jwk" });
    if (kind === 1) return verify(null, Buffer.from(body), made, raw.subarray(4));
    const message = `cosignature/v1\ntime ${raw.readBigUInt64BE(4)}\n${body}`;
    return verify(null, Buffer.from(message), made, raw.subarray(12));
  }
  return false;
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
    .join(",")}}`;
}

function included(text, proof) {
  const [, index, ...hashes] = proof.split("\n\n")[0].split("\n");
  const note = proof.slice(proof.indexOf("\n\n") + 2);
  const [, size, root] = note.split("\n");
  const place = Number(index.slice("index ".length));
  const path = hashes.map((one) => Buffer.from(one, "base64"));
  return (
    place < Number(size) &&
    rootOf(sha256([0], text), place, Number(size), path).toString("base64") === root &&
    path.length === 0
  );
}

// The root of a tree, computed from its tiles (C2SP tlog-tiles) and nothing else.
function rootOfTiles(size, tiles) {
  const hash = (level, index) => {
    const [tile, place, width] = [
      Math.floor(index / 256),
      index % 256,
      Math.floor(size / 256 ** level),
    ];
    const groups = String(tile)
      .padStart(3 * Math.ceil(String(tile).length / 3), "0")
      .match(/.../g);
    const path = groups
      .map((group, at) => (at + 1 < groups.length ? `x${group}` : group))
      .join("/");
    const part = (tile + 1) * 256 > width ? `.p/${width % 256}` : "";
    const hashes = Buffer.from(tiles[`${level}/${path}${part}`], "base64");
    if (hashes.length !== 32 * (part ? width % 256 : 256))
      throw new Error("a tile of another size");
    return hashes.subarray(32 * place, 32 * place + 32);
  };
  const subtree = (start, end) => {
    const count = end - start;
    const level = Math.floor(Math.log2(count) / 8);
    const isComplete = count === 256 ** level;
    const stored = isComplete ? hash(level, start / count) : null;
    if (count === 1) return stored;
    const middle = start + half(count);
    const found = parent(subtree(start, middle), subtree(middle, end));
    if (stored && !stored.equals(found))
      throw new Error("a tile that does not follow from those below");
    return found;
  };
  return subtree(0, size);
}

const KINDS = {
  tiles: ({ note, tiles }) => {
    const [, size, root] = note.split("\n");
    return rootOfTiles(Number(size), tiles).toString("base64") === root;
  },
  inclusion: ({ text, proof }) => included(text, proof),
  consistency({ from, to, hashes, roots }) {
    const path = hashes.map((one) => Buffer.from(one, "base64"));
    const known = Buffer.from(roots[0], "base64");
    const found = rootsOf(from, to, path, known).map((root) => root.toString("base64"));
    return path.length === 0 && found[0] === roots[0] && found[1] === roots[1];
  },
  note: ({ note, name, key, type }) => signed(note, name, key, type),
  message({ proof, keys, witness }) {
    const key = (owner) => keys.find((one) => one.uamp_owner === owner);
    return proof.entries.every((entry) => {
      const number = Buffer.alloc(8);
      number.writeBigUInt64BE(BigInt(entry.seq));
      const start = `uamp chat log 1\n${proof.chat_id}\n${entry.seq - 1}\n`;
      const previous = entry.previous ? Buffer.from(entry.previous, "hex") : sha256(start);
      const payload = sha256(canonical(entry.event)).toString("hex");
      const covered = sha256(
        `${entry.event_type}\n${entry.response_id}\n${entry.at}\n${payload}\n`,
      );
      let found = sha256(previous, number, covered);
      entry.following.forEach((digest, offset) => {
        number.writeBigUInt64BE(BigInt(entry.seq + 1 + offset));
        found = sha256(found, number, Buffer.from(digest, "hex"));
      });
      const text = `${entry.checkpoint.split("\n\n")[0]}\n`;
      const [origin, seq, head] = text.split("\n");
      const note = entry.tree.slice(entry.tree.indexOf("\n\n") + 2);
      const tree = note.split("\n")[0];
      return (
        origin.endsWith(`/chats/${proof.chat_id}`) &&
        Number(seq) === entry.seq + entry.following.length &&
        found.toString("base64") === head &&
        signed(entry.checkpoint, origin, key("log"), 1) &&
        included(text, entry.tree) &&
        signed(note, tree, key("tree"), 1) &&
        (!witness || signed(note, witness.name, witness.key, 4))
      );
    });
  },
};

let input = "";
for await (const chunk of process.stdin) input += chunk;
const answers = JSON.parse(input).map((document) => {
  try {
    return KINDS[document.kind](document);
  } catch {
    return false;
  }
});
console.log(JSON.stringify(answers));
