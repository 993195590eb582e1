/**
 * Checks the messages of an export against the chat's log and its hash chain (docs/log-chain.md).
 * `uamp.client.exports.log` is the same in Python.
 */

import { chainHash, chainStart, entryDigest, hashOfContent, hashOfValue } from "./chain.js";

/**
 * @typedef {"entry_changed"|"entry_missing"|"message_changed"|"message_missing"|"checkpoint_changed"|
 *   "not_signed"} LogProblemKind
 *
 * @typedef {object} EntryLine an entry of an export
 * @property {number} seq
 * @property {string} event_type
 * @property {string} response_id
 * @property {number} at in microseconds since 1970
 * @property {Record<string, any>} event
 * @property {string|null} chain_hash
 * @property {string} [digest] of the event as it was written, if the reader sees less
 *
 * @typedef {Record<string, any> & {id: string, seq: number, content?: string|null,
 *   content_items?: any[]|null}} MessageLine
 *
 * @typedef {object} LoggedMessage the entry that announced a message
 * @property {number} seq
 * @property {string} facts
 * @property {unknown} kind of its sender
 * @property {unknown} sender
 * @property {string} firstId the first version of a regenerated answer
 * @property {boolean} isWhole whether the chain covers these facts, and not only their digest
 *
 * @typedef {object} FileMessage a message of the file, with its text and signature as hashes
 * @property {number} seq
 * @property {string} facts
 * @property {unknown} kind
 * @property {unknown} sender
 * @property {string} responseId
 * @property {string|null} signature
 * @property {number} revision
 * @property {string|null} text
 * @property {boolean} isDeleted
 *
 * @typedef {object} HashedEntry
 * @property {EntryLine} line
 * @property {boolean} isAsHashed whether it has the chain hash that follows from it
 * @property {string|null} text the hash of the text that it has; "" if only a digest is left
 * @property {string|null} signature the hash of the one that it has, at the end of an answer
 */

const ENDS = new Set(["response.done", "response.cancelled", "response.error"]);
const HASH = /^[0-9a-f]{64}$/;

/**
 * The hash of an answer's signature; "" without one.
 * @param {unknown} signature
 */
const hashOfSignature = async (signature) => (signature ? hashOfValue(signature) : "");

/**
 * The time of a message in an export, in milliseconds as its entry has it.
 * @param {unknown} time in ISO 8601, with microseconds
 */
export const millisecondsOf = (time) => Date.parse(`${time}`.replace(/(\.\d{3})\d+/, "$1"));

/**
 * What neither an edit nor a deletion changes about a message, as text to compare.
 * @param {Record<string, any>} message
 * @param {number} seq
 * @param {unknown} createdAt in milliseconds
 */
const factsOf = (message, seq, createdAt) =>
  JSON.stringify([
    seq,
    message.role ?? null,
    message.name || "",
    message.response_id || "",
    message.status || "completed",
    createdAt ?? null,
    message.reply_to || "",
    message.thread || "",
    Boolean(message.thread && message.also_in_chat),
    Boolean(message.copied_from),
  ]);

/** @param {string} id @param {number} revision */
const textKey = (id, revision) => `${revision} ${id}`;

/** @param {Record<string, any>} event @returns {event is {message: Record<string, any>}} */
const hasMessage = (event) => Boolean(event.message) && typeof event.message === "object";

/**
 * Whose text an entry has, and which revision; null for other entries.
 * @param {EntryLine} line
 * @returns {{id: string, revision: number, body: Record<string, any>}|null}
 */
export function textIn({ event_type: type, event }) {
  const body = type === "message.created" && hasMessage(event) ? event.message : event;
  const isCreated = body !== event;
  if (!isCreated && type !== "message.edited") return null;
  const id = isCreated ? body.id : body.message_id;
  const revision = isCreated ? 0 : Number(body.revision ?? 0);
  if (typeof id !== "string" || !Number.isInteger(revision)) return null;
  return { id, revision, body };
}

export class LogCheck {
  /**
   * @param {string} chatId
   * @param {(kind: LogProblemKind, seq: number, messageId?: string) => void} report
   */
  constructor(chatId, report) {
    this._chatId = chatId;
    this._report = report;
    /** @type {Map<string, FileMessage>} */
    this._messages = new Map();
    this._first = Infinity;
    this._final = 0;
    /** @type {{seq: number, hash: string|null}} the last entry */
    this.last = { seq: 0, hash: null };
    this.entries = 0;
    this.erased = 0;
    this.unchained = 0;
    /** The first entry of the chain; 0 before it. */
    this._chainedFrom = 0;
    /** @type {Map<string, LoggedMessage>} */
    this._announced = new Map();
    /** The hashes of texts by `textKey`. @type {Map<string, string|null>} */
    this._texts = new Map();
    /** The last revision of each edited message. @type {Map<string, number>} */
    this._edits = new Map();
    /** Deleted messages, and whether the chain covers which. @type {Map<string, boolean>} */
    this._deleted = new Map();
    /** The hashes of the signatures of answers by response, as the chain covers them. */
    /** @type {Map<string, string|null>} */
    this._signatures = new Map();
  }

  /** Add messages of the file; all of them come before the first entry. @param {MessageLine[]} lines */
  async addMessages(lines) {
    const hashes = await Promise.all(
      lines.map((line) => Promise.all([hashOfContent(line), hashOfSignature(line.signature)])),
    );
    for (const [at, line] of lines.entries()) {
      const [text, signature] = hashes[at];
      this._first = Math.min(this._first, line.seq);
      this._final = Math.max(this._final, line.seq);
      this._messages.set(line.id, {
        seq: line.seq,
        facts: factsOf(line, line.seq, millisecondsOf(line.created_at)),
        kind: line.sender_kind ?? null,
        sender: line.sender_id ?? null,
        responseId: line.response_id || "",
        signature,
        revision: line.revision ?? 0,
        text,
        isDeleted: Boolean(line.deleted_at),
      });
    }
  }

  /**
   * Add the next entries in order.
   * @param {EntryLine[]} lines
   * @param {import("./chain.js").LogHead|null} head the signed head
   */
  async addEntries(lines, head) {
    const previous = [
      this.last,
      ...lines.map((line) => ({ seq: line.seq, hash: line.chain_hash })),
    ];
    const hashed = await Promise.all(lines.map((line, at) => this._hashed(line, previous[at])));
    for (const entry of hashed) this._addEntry(entry, head);
  }

  /**
   * Compare the messages of the file, and those that the page shows, with the log.
   * @param {{id: string, revision: number, text: string|null}[]} shown
   * @param {import("./chain.js").LogHead|null} head
   * @returns {Promise<{unverified: number, absent: number, unsigned: number}>} messages that the
   *   log cannot confirm, messages of the log that are not in the file, entries after the head
   */
  async finish(shown, head) {
    const nothing = await hashOfContent({});
    const changed = new Set();
    const unverified = new Set();
    for (const [id, message] of this._messages) {
      if (!this._isLogged(id, message, nothing)) {
        changed.add(id);
        this._report("message_changed", message.seq, id);
      } else if (!this._isVerified(id, message, nothing)) unverified.add(id);
    }
    for (const { id, revision, text } of shown) {
      if (changed.has(id) || this._deleted.has(id)) continue;
      const entry = this._announced.get(id);
      // The page may be ahead of the file.
      if (!this._texts.has(textKey(id, revision))) unverified.add(id);
      else if (entry && !this._hasText(id, entry.seq, revision, text)) {
        changed.add(id);
        this._report("message_changed", entry.seq, id);
      }
    }
    const absent = this._addMissing();
    if (head && head.seq > this.last.seq) this._report("entry_missing", this.last.seq + 1);
    if (this._chainedFrom && !head) this._report("not_signed", this.last.seq);
    const unsigned = head ? Math.max(0, this.last.seq - head.seq) : 0;
    return { unverified: unverified.size, absent, unsigned };
  }

  /** @param {EntryLine} line @param {{seq: number, hash: string|null}} previous */
  async _hashed(line, previous) {
    const holder = textIn(line);
    const [payload, text, signature] = await Promise.all([
      line.digest ?? hashOfValue(line.event),
      holder && !line.digest ? hashOfContent(holder.body) : "",
      ENDS.has(line.event_type) ? hashOfSignature(line.event.signature) : "",
    ]);
    return { line, text, signature, isAsHashed: await this._isAsHashed(line, previous, payload) };
  }

  /**
   * @param {EntryLine} line
   * @param {{seq: number, hash: string|null}} previous
   * @param {string|null} payload
   */
  async _isAsHashed(line, previous, payload) {
    const { seq, chain_hash: hash } = line;
    // A gap is reported as such.
    if (hash === null || seq !== previous.seq + 1) return true;
    const before = previous.hash ?? (await chainStart(this._chatId, seq - 1));
    if (payload === null || ![before, payload, hash].every((part) => HASH.test(part))) return false;
    return (await chainHash(before, seq, await entryDigest(line, payload))) === hash;
  }

  /** @param {HashedEntry} entry @param {import("./chain.js").LogHead|null} head */
  _addEntry(entry, head) {
    const { line, isAsHashed } = entry;
    const { seq, chain_hash: hash } = line;
    if (seq !== this.last.seq + 1) this._report("entry_missing", this.last.seq + 1);
    this.entries += 1;
    if (line.digest !== undefined) this.erased += 1;
    if (hash !== null) this._chainedFrom ||= seq;
    else if (!this._chainedFrom) this.unchained += 1;
    // Only entries older than the chain have no hash.
    if (!isAsHashed || (hash === null && this._chainedFrom))
      this._report("entry_changed", seq, textIn(line)?.id);
    if (head?.seq === seq && head.chainHash !== hash) this._report("checkpoint_changed", seq);
    this.last = { seq, hash };
    this._take(entry);
  }

  /** @param {HashedEntry} entry */
  _take({ line, text, signature }) {
    const { seq, event_type: type, response_id: responseId, event, chain_hash: hash } = line;
    const isWhole = line.digest === undefined;
    const holder = textIn(line);
    if (type === "message.created" && holder && hash !== null) {
      const { id, body } = holder;
      this._announced.set(id, {
        seq,
        facts: factsOf(body, seq, body.created_at),
        kind: body.sender_kind ?? null,
        sender: body.sender_id ?? null,
        firstId: String(body.version_of || id),
        isWhole,
      });
    } else if (type === "message.deleted") {
      const id = String(event.message_id);
      this._deleted.set(id, Boolean(this._deleted.get(id)) || isWhole);
    } else if (ENDS.has(type) && hash !== null && isWhole) {
      this._signatures.set(responseId, signature);
    }
    // A text without a canonical form is not the one that was written.
    if (!holder || text === null) return;
    const { id, revision } = holder;
    this._texts.set(textKey(id, revision), text);
    if (revision) this._edits.set(id, Math.max(revision, this._edits.get(id) ?? 0));
  }

  /** Whether a message is older than the chain. @param {string} id @param {number} seq */
  _isOlder(id, seq) {
    const from = this._chainedFrom;
    return !from || (!this._announced.has(id) && seq > 0 && seq < from);
  }

  /** @param {string} id @param {number} seq @param {number} revision @param {string|null} text */
  _hasText(id, seq, revision, text) {
    if (this._isOlder(id, seq)) return true;
    const logged = this._texts.get(textKey(id, revision));
    return logged === "" || (text !== null && logged === text);
  }

  /** @param {string} id */
  _lastRevision(id) {
    return this._edits.get(id) ?? (this._texts.has(textKey(id, 0)) ? 0 : null);
  }

  /**
   * Whether the log contradicts nothing in a message of the file.
   * @param {string} id @param {FileMessage} message @param {string|null} nothing
   */
  _isLogged(id, message, nothing) {
    const entry = this._announced.get(id);
    if (entry?.isWhole) {
      // If the agent is gone, the file says "user", or names no sender.
      const isKind = [null, "agent", message.kind].includes(/** @type {any} */ (entry.kind));
      const isSender = [null, "anonymous", entry.sender].includes(message.sender);
      if (entry.facts !== message.facts || !isKind || !isSender) return false;
    }
    const signature = this._signatures.get(message.responseId);
    if (signature !== undefined && signature !== message.signature) return false;
    if (message.isDeleted) return this._deleted.has(id) && message.text === nothing;
    return this._hasText(id, message.seq, message.revision, message.text);
  }

  /**
   * Whether the log confirms a message that it does not contradict.
   * @param {string} id @param {FileMessage} message @param {string|null} nothing
   */
  _isVerified(id, message, nothing) {
    const entry = this._announced.get(id);
    if (message.isDeleted) return !entry || Boolean(this._deleted.get(id));
    if (entry && !entry.isWhole) return message.text === nothing;
    if (entry && entry.kind !== null && entry.kind !== message.kind) return false;
    const isLast = (this._lastRevision(id) ?? message.revision) === message.revision;
    // Entries older than the chain are counted as such; of these, too, the text must be there.
    const isCovered =
      message.text !== null && this._texts.get(textKey(id, message.revision)) === message.text;
    return isLast && isCovered && !this._deleted.has(id);
  }

  /**
   * Report messages of the log that the file leaves out; return how many come before or after it.
   * It has only the last version of an answer.
   */
  _addMissing() {
    /** @type {Map<string, {current: number, covered: number}>} */
    const versions = new Map();
    for (const { firstId, seq, isWhole } of this._announced.values()) {
      const { covered = 0 } = versions.get(firstId) ?? {};
      versions.set(firstId, { current: seq, covered: isWhole ? seq : covered });
    }
    let absent = 0;
    for (const [id, { firstId, seq }] of this._announced) {
      const { current, covered } = versions.get(firstId) ?? { current: seq, covered: 0 };
      if (this._messages.has(id) || seq < covered) continue;
      if (this._first < seq && seq < this._final && seq === current)
        this._report("message_missing", seq, id);
      else absent += 1;
    }
    return absent;
  }
}
