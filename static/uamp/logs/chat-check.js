/**
 * Checks an export of a chat with its log: the hash chain, its signed head, the messages, their
 * signatures and receipts, whether it continues the log of an earlier check, and the server's tree
 * of log heads. `uamp verify` is the same for the command line.
 */

import { checkAnswer, checkReceipt, hashedQuestion, kidOf, requestOf } from "../signatures.js";
import { hashOfContent, openHead } from "./chain.js";
import { LogCheck } from "./log-check.js";
import { checkTree } from "./tree-check.js";

/**
 * @typedef {import("../types.js").PublishedKey} PublishedKey
 * @typedef {import("../types.js").SignedMessage} SignedMessage
 * @typedef {import("./log-check.js").EntryLine} EntryLine
 * @typedef {import("./log-check.js").MessageLine} MessageLine
 * @typedef {import("./tree-check.js").TreeSource} TreeSource
 * @typedef {import("./tree-check.js").TreeResult} TreeResult
 * @typedef {import("./checkpoints.js").TreeHead} TreeHead
 *
 * @typedef {import("./log-check.js").LogProblemKind|import("./tree-check.js").TreeProblemKind|
 *   "answer_changed"|"response_changed"|"usage_changed"|"question_changed"|"key_unknown"|
 *   "receipt_changed"|"price_changed"|"head_changed"|"head_key_unknown"|"history_rewritten"|
 *   "history_cut"} ProblemKind
 *
 * @typedef {object} Problem
 * @property {ProblemKind} kind
 * @property {number} seq the place in the log; 0 for a problem of the whole tree
 * @property {string} [messageId]
 * @property {{amount: string, currency: string}} [price] the one that the agent signed
 * @property {number} [since] the earlier check that it contradicts, in milliseconds since 1970
 *
 * @typedef {object} LogEnd the last entry of a log
 * @property {number} seq
 * @property {string} hash its chain hash
 *
 * @typedef {object} Known what earlier checks in this browser found, each with its time in
 *   milliseconds since 1970
 * @property {LogEnd & {at: number}|null} end
 * @property {TreeHead & {at: number}|null} tree
 *
 * @typedef {"rewritten"|"changed"|"incomplete"|"unchanged"} ChatVerdict whether the log of an
 *   earlier check was rewritten; if not, whether another problem was found; if not, whether
 *   everything could be verified
 *
 * @typedef {object} ChatResult
 * @property {ChatVerdict} verdict
 * @property {number} messages
 * @property {number} entries
 * @property {number} erased entries of which only a digest is left
 * @property {number} unchained entries older than the chain
 * @property {number} unverified messages that the log cannot confirm
 * @property {number} absent messages of the log that are not in the file
 * @property {number} unsigned entries after the signed head
 * @property {import("./chain.js").LogHead|null} head
 * @property {import("./chain.js").HeadState|null} headState
 * @property {LogEnd|null} end what a later check has to find; null if something is wrong with the
 *   log itself, or if it has no chain
 * @property {TreeResult|null} tree null if the tree was not checked
 * @property {Known} known
 * @property {Record<string, number>} answers by state
 * @property {Record<string, number>} receipts by state
 * @property {number} problemCount
 * @property {Problem[]} problems the first of them
 */

const PROBLEMS_MAX = 100;
/** @type {Set<ProblemKind>} */
const REWRITTEN = new Set(["history_rewritten", "history_cut"]);
/** Problems of a log whose end no later check may expect. @type {Set<ProblemKind>} */
const OF_CHAIN = new Set([
  ...REWRITTEN,
  "entry_changed",
  "entry_missing",
  "checkpoint_changed",
  "not_signed",
  "head_changed",
  "head_key_unknown",
]);
/** How many messages are kept, as hashes, to compare the questions of later answers. */
const QUESTIONS = 1000;

/** The export is not what a server writes, or was cut off. */
export class BadExport extends Error {}

/** @param {MessageLine} line */
const signedMessage = (line) => /** @type {SignedMessage} */ (/** @type {unknown} */ (line));

/** Count a value. @param {Record<string, number>} counts @param {string} name */
const count = (counts, name) => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Signatures that this browser cannot verify. @param {ChatResult} result */
export const unsupportedIn = ({ answers, receipts }) =>
  (answers.unsupported ?? 0) + (receipts.unsupported ?? 0);

/** @param {ChatResult} result @param {boolean} isRewritten @returns {ChatVerdict} */
function verdictOf(result, isRewritten) {
  const { problemCount, head, headState, unverified, absent, unsigned, unchained } = result;
  if (isRewritten) return "rewritten";
  if (problemCount) return "changed";
  const gaps = unverified + absent + unsigned + unchained + unsupportedIn(result);
  return head && headState === "signed" && !gaps ? "unchanged" : "incomplete";
}

export class ChatCheck {
  /**
   * @param {string} chatId
   * @param {object} keys
   * @param {(kid: string) => Promise<PublishedKey[]>} keys.of the published keys with an id
   * @param {() => Promise<PublishedKey[]>} keys.ofLogs those that sign heads of logs
   * @param {object} [more]
   * @param {Known} [more.known]
   * @param {TreeSource|null} [more.tree] null for a check without the server
   */
  constructor(chatId, keys, { known = { end: null, tree: null }, tree = null } = {}) {
    this._chatId = chatId;
    this._keys = keys;
    this._known = known;
    this._tree = tree;
    /** The proof that the head is in the tree. @type {string|null} */
    this._proof = null;
    /** The kinds of the problems that were found. @type {Set<ProblemKind>} */
    this._kinds = new Set();
    /** @type {Map<string, import("../types.js").HashedQuestion>} */
    this._questions = new Map();
    this._hasEnd = false;
    this._log = new LogCheck(chatId, (kind, seq, messageId) =>
      this._report({ kind, seq, messageId }),
    );
    /** @type {ChatResult} */
    this._result = {
      verdict: "incomplete",
      messages: 0,
      entries: 0,
      erased: 0,
      unchained: 0,
      unverified: 0,
      absent: 0,
      unsigned: 0,
      head: null,
      headState: null,
      end: null,
      tree: null,
      known,
      answers: {},
      receipts: {},
      problemCount: 0,
      problems: [],
    };
  }

  /** How far it is; `total` is the number of entries, 0 until it is known. */
  get progress() {
    const { messages, head } = this._result;
    return { messages, entries: this._log.entries, total: head?.seq ?? 0 };
  }

  /** Add the next lines of the export, each parsed from JSON. @param {any[]} lines */
  async add(lines) {
    for (let at = 0, end = 0; at < lines.length; at = end) {
      const kind = lines[at]?.type;
      while (end < lines.length && lines[end]?.type === kind) end += 1;
      if (this._hasEnd) throw new BadExport();
      await this._addAll(kind, lines.slice(at, end));
    }
  }

  /**
   * Return the result. Throws BadExport for an export that was cut off.
   * @param {import("./log-check.js").MessageLine[]} [shown] messages as a page shows them
   * @returns {Promise<ChatResult>}
   */
  async finish(shown = []) {
    if (!this._hasEnd) throw new BadExport();
    const texts = await Promise.all(
      shown.map(async (message) => ({
        id: message.id,
        revision: message.revision ?? 0,
        text: await hashOfContent(message),
      })),
    );
    const { head } = this._result;
    const outcome = await this._log.finish(texts, head);
    const { entries, erased, unchained, last } = this._log;
    const { end: knownEnd } = this._known;
    if (knownEnd && knownEnd.seq > last.seq)
      this._report({ kind: "history_cut", seq: knownEnd.seq, since: knownEnd.at });
    const tree = await this._checkTree();
    const isSound = !this._hasAny(OF_CHAIN);
    const end = isSound && last.hash !== null ? { seq: last.seq, hash: last.hash } : null;
    const result = { ...this._result, ...outcome, entries, erased, unchained, tree, end };
    const problems = result.problems.toSorted((a, b) => a.seq - b.seq);
    return { ...result, problems, verdict: verdictOf(result, this._hasAny(REWRITTEN)) };
  }

  /** Check the tree of the server, if there is a server. @returns {Promise<TreeResult|null>} */
  async _checkTree() {
    if (!this._tree) return null;
    const { tree: known } = this._known;
    const { head, headState } = this._result;
    // A head that is not what the server signed is reported as such.
    const shown =
      headState === "changed" ? { head: null, proof: null } : { head, proof: this._proof };
    const result = await checkTree(shown, known, this._tree);
    if (result.problem) this._report({ kind: result.problem, seq: 0, since: known?.at });
    return result;
  }

  /** @param {unknown} kind @param {any[]} lines */
  async _addAll(kind, lines) {
    if (kind === "message" && this._log.entries === 0) await this._addMessages(lines);
    else if (kind === "entry") await this._addEntries(lines);
    else if (lines.length > 1) throw new BadExport();
    else if (kind === "checkpoint") await this._addHead(lines[0]);
    else if (kind === "end" && lines[0].count === this._result.messages) this._hasEnd = true;
    else if (kind !== "chat" || lines[0].id !== this._chatId) throw new BadExport();
  }

  /** @param {MessageLine[]} lines */
  async _addMessages(lines) {
    const questions = await Promise.all(lines.map((line) => hashedQuestion(signedMessage(line))));
    for (const question of questions) this._questions.set(question.id, question);
    await Promise.all([this._log.addMessages(lines), ...lines.map((line) => this._verify(line))]);
    this._result.messages += lines.length;
    for (const id of this._questions.keys()) {
      if (this._questions.size <= QUESTIONS) break;
      this._questions.delete(id);
    }
  }

  /** @param {EntryLine[]} lines */
  async _addEntries(lines) {
    await this._log.addEntries(lines, this._result.head);
    const { end } = this._known;
    for (const { seq, chain_hash: hash } of lines) {
      if (seq === end?.seq && hash !== end.hash)
        this._report({ kind: "history_rewritten", seq, since: end.at });
    }
  }

  /** @param {{note: unknown, tree?: unknown}} line */
  async _addHead({ note, tree }) {
    if (this._result.headState || this._log.entries) throw new BadExport();
    this._proof = typeof tree === "string" ? tree : null;
    const { state, head } = await openHead(String(note), await this._keys.ofLogs());
    this._result.headState = state;
    const isOwn = head?.chatId === this._chatId;
    this._result.head = isOwn ? head : null;
    const seq = head?.seq ?? 0;
    if (state === "changed" || !isOwn) this._report({ kind: "head_changed", seq });
    else if (state === "unknown_key") this._report({ kind: "head_key_unknown", seq });
  }

  /** Verify the signature and the receipts of a message. @param {MessageLine} line */
  async _verify(line) {
    const message = signedMessage(line);
    const { receipt } = line;
    const parts = receipt ? [receipt, ...(receipt.delegated ?? [])] : [];
    const kids = [message.signature, ...parts.map((part) => part.document)]
      .filter((signed) => typeof signed === "string")
      .map(kidOf);
    const keys = (await Promise.all(kids.map((kid) => this._keys.of(kid)))).flat();
    for (const part of parts)
      await this._verifyReceipt(part, keys, line, part === receipt ? message : undefined);
    if (line.signature || line.response_id) await this._verifyAnswer(message, keys, line);
  }

  /**
   * @param {any} receipt
   * @param {PublishedKey[]} keys
   * @param {MessageLine} line
   * @param {SignedMessage} [message]
   */
  async _verifyReceipt(receipt, keys, { id, seq }, message) {
    const chatId = this._chatId;
    const { state, price } = await checkReceipt(receipt, keys, { chatId, message });
    count(this._result.receipts, state);
    if (price) this._report({ kind: "price_changed", seq, messageId: id, price });
    else if (state === "changed") this._report({ kind: "receipt_changed", seq, messageId: id });
    else if (state === "unknown_key") this._report({ kind: "key_unknown", seq, messageId: id });
  }

  /** @param {SignedMessage} message @param {PublishedKey[]} keys @param {MessageLine} line */
  async _verifyAnswer(message, keys, { id, seq }) {
    const chatId = this._chatId;
    const { state, part, claims } = await checkAnswer(message, keys, { chatId });
    const question = this._questions.get(claims?.request_id ?? "");
    count(this._result.answers, state);
    /** @type {ProblemKind|null} */
    let kind = null;
    if (state === "changed") kind = part ? `${part}_changed` : "answer_changed";
    else if (state === "unknown_key") kind = "key_unknown";
    if (kind) this._report({ kind, seq, messageId: id });
    if (claims && question && requestOf(claims, question) === "changed")
      this._report({ kind: "question_changed", seq, messageId: id });
  }

  /** Whether a problem of one of these kinds was found. @param {Set<ProblemKind>} kinds */
  _hasAny(kinds) {
    return Array.from(kinds).some((kind) => this._kinds.has(kind));
  }

  /** @param {Problem} problem */
  _report(problem) {
    this._kinds.add(problem.kind);
    this._result.problemCount += 1;
    if (this._result.problems.length < PROBLEMS_MAX) this._result.problems.push(problem);
  }
}
