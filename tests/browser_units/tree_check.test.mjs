import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { factsOf, sentenceOf, verdictText } from "../../static/chat/dialogs/verify-words.js";
import { openHead } from "../../static/uamp/logs/chain.js";
import { openCheckpoint, readProof } from "../../static/uamp/logs/checkpoints.js";
import { checkTree } from "../../static/uamp/logs/tree-check.js";
import { KEYS, LOG_KEY, checked, exported } from "./exported_logs.mjs";
import { ORIGIN, TREE_KEY, checkpointOf, knownOf, proofOf, sourceOf } from "./trees.mjs";

const { subtle } = crypto;
const { importKey } = subtle;
afterEach(() => {
  subtle.importKey = importKey;
});

const FILE = exported();
const { head: HEAD } = await openHead(FILE.note, [LOG_KEY]);
/** Leaves of a tree that has the head at a place. */
const leaves = (count, place = 0) =>
  Array.from({ length: count }, (_, index) => (index === place ? HEAD.text : `leaf ${index}\n`));
const shownIn = (texts, place = 0) => ({ head: HEAD, proof: proofOf(texts, place) });
/** Another text with the same bytes. @param {string} hash */
function otherSpelling(hash) {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return `${hash.slice(0, -2)}${alphabet[alphabet.indexOf(hash.at(-2)) ^ 1]}=`;
}
/** The problem or the state that a check finds. */
const found = async (shown, known, source) => {
  const { state, problem, newest } = await checkTree(shown, known, source);
  assert.equal(newest === null, state === "absent" || state === "wrong");
  return problem ?? state;
};

test("a head is in the tree, wherever it is and however large the tree", async () => {
  for (let size = 1; size <= 9; size += 1) {
    for (let place = 0; place < size; place += 1) {
      const texts = leaves(size, place);
      const source = sourceOf(texts);
      assert.equal(await found(shownIn(texts, place), null, source), "included");
      assert.deepEqual(source.paths, []);
    }
  }
});

test("the newest checkpoint extends the one of the proof and the one that was seen", async () => {
  const texts = leaves(9);
  for (let proven = 1; proven <= 9; proven += 1) {
    for (let seen = 1; seen <= 9; seen += 1) {
      const source = sourceOf(texts);
      const shown = shownIn(texts.slice(0, proven));
      assert.equal(await found(shown, knownOf(texts.slice(0, seen)), source), "included");
    }
  }
});

test("a tree that does not extend the one that was seen was rewritten", async () => {
  const texts = leaves(7);
  const other = ["another leaf\n", ...texts.slice(1)];
  for (const size of [1, 4, 6, 7])
    assert.equal(
      await found(shownIn(texts), knownOf(other.slice(0, size)), sourceOf(texts)),
      "tree_rewritten",
    );
  // It is shorter, gone, or proves nothing.
  const known = knownOf([...texts, "leaf 7\n"]);
  assert.equal(await found(shownIn(texts), known, sourceOf(texts)), "tree_rewritten");
  const nothing = async () => null;
  const gone = sourceOf(texts, { newest: nothing });
  assert.equal(await found({ head: HEAD, proof: null }, known, gone), "tree_rewritten");
  for (const hashes of [null, [], ["x"], [5], Array(3).fill(`${"A".repeat(43)}=`)]) {
    const source = sourceOf(texts, { consistency: async () => hashes });
    assert.equal(await found(shownIn(texts), knownOf(texts.slice(0, 3)), source), "tree_rewritten");
  }
});

test("a proof of another head, tree or place proves nothing", async () => {
  const texts = leaves(5);
  const { proof } = shownIn(texts);
  const lines = proof.split("\n");
  const wrong = [
    proofOf(["another leaf\n", ...texts.slice(1)], 0),
    proof.replace("index 0", "index 1"),
    proof.replace("index 0", "index 5"),
    proof.replace("index 0", "index 00"),
    proof.replace("@v1", "@v2"),
    proof.replace(`${lines[2]}\n`, ""),
    proof.replace(`${lines[2]}\n`, `${lines[2]}\n${lines[2]}\n`),
    proof.replace(`${lines[2]}\n`, "x\n"),
    // Base64 has one spelling: the last letter has bits that no byte has.
    proof.replace(lines[2], otherSpelling(lines[2])),
    proofOf([HEAD.text], 0).replace("index 0", "index 1"),
    proofOf(texts, 0, checkpointOf(texts, { origin: "other.example/log-tree" })),
    // It is signed, but the newest checkpoint does not extend it.
    proofOf(["leaf a\n", HEAD.text], 1),
    lines.slice(0, 3).join("\n"),
    "",
  ];
  for (const text of wrong)
    assert.equal(
      await found({ head: HEAD, proof: text }, null, sourceOf(texts)),
      "tree_proof_changed",
      text,
    );
  const none = sourceOf(texts, { newest: async () => null });
  assert.equal(await found({ head: HEAD, proof }, null, none), "tree_proof_changed");
  // The path is too short for the size.
  const large = checkpointOf([HEAD.text], { size: 4 });
  const short = { head: HEAD, proof: proofOf([HEAD.text], 0, large) };
  const source = sourceOf(texts, { newest: async () => large });
  assert.equal(await found(short, null, source), "tree_proof_changed");
});

test("a checkpoint is verified with the keys of trees", async () => {
  const note = checkpointOf(leaves(3));
  const stateOf = async (text, keys = [TREE_KEY]) => (await openCheckpoint(text, keys)).state;
  const witness = `\u2014 witness.example ${"A".repeat(88)}\n`;
  assert.equal(await stateOf(note), "signed");
  assert.equal(await stateOf(note + witness), "signed");
  assert.equal((await openCheckpoint(note, [TREE_KEY])).head.size, 3);
  assert.equal(await stateOf(note, []), "unknown_key");
  assert.equal(await stateOf(note, [{ ...TREE_KEY, uamp_owner: "log" }]), "unknown_key");
  assert.equal(await stateOf(note.replaceAll(ORIGIN, "other.example")), "unknown_key");
  // The signature counts for the name of the tree alone.
  const named = note.replace(`\u2014 ${ORIGIN}`, "\u2014 other.example");
  assert.equal(await stateOf(named), "unknown_key");
  const long = `\u2014 ${"w".repeat(300)} ${"A".repeat(500)}\n`;
  const wrong = [
    note.replace("\n3\n", "\n4\n"),
    note.replace("\n3\n", "\n03\n"),
    note.replace("\n3\n", "\n0\n"),
    note.replace("\u2014", "-"),
    note.slice(0, -1),
    `${note}\n`,
    note + witness.replace("A".repeat(88), `${"A".repeat(86)}B=`),
    note + witness.replace(/A{88}/, "A".repeat(89)),
    note + witness.slice(0, -1),
    note + witness.repeat(40),
    note + long.repeat(13),
    "",
  ];
  for (const text of wrong) assert.equal(await stateOf(text), "changed", text.slice(0, 300));
  const texts = leaves(3);
  const changed = sourceOf(texts, { newest: async () => wrong[0] });
  assert.equal(await found(shownIn(texts), null, changed), "tree_changed");
  const unknown = sourceOf(texts, { keys: async () => [] });
  assert.equal(await found(shownIn(texts), null, unknown), "tree_key_unknown");
  const forged = { head: HEAD, proof: proofOf(texts, 0, wrong[0]) };
  assert.equal(await found(forged, null, sourceOf(texts)), "tree_changed");
});

test("a head that is in no checkpoint yet, and a server without any, are no problems", async () => {
  const texts = leaves(3);
  const shown = { head: HEAD, proof: null };
  assert.equal(await found(shown, knownOf(texts.slice(0, 2)), sourceOf(texts)), "pending");
  const none = sourceOf(texts, { newest: async () => null });
  assert.equal(await found(shown, null, none), "absent");
  assert.equal(await found({ head: null, proof: null }, null, sourceOf(texts)), "pending");
  const textsOf = async (tree) => factsOf(await checked(FILE, { tree })).slice(-1);
  assert.deepEqual(await textsOf(sourceOf(texts)), [
    "The end of the log isn't in a checkpoint of the server yet.",
  ]);
  assert.deepEqual(await textsOf(none), ["The server has no checkpoint yet."]);
  const { verdict } = await checked(FILE, { tree: none });
  assert.equal(verdict, "unchanged");
});

test("a browser without the algorithm compares the hashes all the same", async () => {
  subtle.importKey = async () => {
    throw new DOMException("Unrecognized name.", "NotSupportedError");
  };
  const texts = leaves(5);
  assert.equal(
    await found(shownIn(texts), knownOf(texts.slice(0, 3)), sourceOf(texts)),
    "included",
  );
  const other = knownOf(["another leaf\n", ...texts.slice(1, 3)]);
  assert.equal(await found(shownIn(texts), other, sourceOf(texts)), "tree_rewritten");
});

test("the check of a chat says what the tree proves", async () => {
  const texts = leaves(4, 1);
  const file = { ...FILE, proof: proofOf(texts, 1) };
  const known = { end: null, tree: knownOf(texts.slice(0, 2)) };
  const result = await checked(file, { tree: sourceOf(texts), known });
  assert.deepEqual([result.verdict, result.tree.newest.size], ["unchanged", 4]);
  const facts = factsOf(result).slice(-2);
  assert.equal(facts[0], "The end of the log is in the server's checkpoint.");
  assert.match(facts[1], /^The server's checkpoint continues the one that this browser saw on /);

  const other = { end: null, tree: knownOf(["another leaf\n", HEAD.text]) };
  const forked = await checked(file, { tree: sourceOf(texts), known: other });
  assert.deepEqual([forked.verdict, verdictText(forked)], ["changed", "1 problem was found."]);
  assert.match(
    sentenceOf(forked.problems[0]),
    /^The server's checkpoint doesn't continue the one that this browser saw on .*2026/,
  );
  // Its log is whole: what a later check has to find is the log, and the tree seen before.
  assert.deepEqual([forked.tree.newest, forked.end.seq], [null, 4]);

  // The signature on the end of the log is the problem, not its place in the tree.
  const bad = { ...file, note: file.note.replace("time 1", "time 2") };
  const { problems } = await checked(bad, { tree: sourceOf(texts), keys: KEYS });
  assert.deepEqual(
    problems.map(({ kind }) => kind),
    ["head_changed"],
  );
});

test("a proof has the form of C2SP", () => {
  const texts = leaves(5);
  const proof = readProof(proofOf(texts, 0));
  assert.deepEqual([proof.index, proof.path.length], [0, 3]);
  assert.equal(proof.note, checkpointOf(texts));
  assert.equal(readProof(`${proofOf(texts, 0)}${"x".repeat(14_000)}`), null);
});
