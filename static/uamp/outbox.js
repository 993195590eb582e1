/**
 * What was written and not yet acknowledged. It survives a reload, and what it holds is sent again
 * under the same event ids: the server answers a repeat with the first result, so nothing doubles.
 */

import { newId } from "./ids.js";

/**
 * @typedef {object} Attachment an upload that the server stored
 * @property {string} content_id
 * @property {string} url
 * @property {string} filename
 * @property {string} mime_type
 *
 * @typedef {object} Turn
 * @property {string} id
 * @property {string} chatId
 * @property {string|null} sessionId the session that the frames went to; a repeat must go there too
 * @property {import("./types.js").Frame[]} frames with their event ids
 * @property {string} [thread] the message to whose thread it belongs
 * @property {string} text
 * @property {Attachment[]} attachments
 * @property {number} createdAt Unix ms
 * @property {"waiting"|"sent"|"held"|"failed"} state `held`: refused for now, and sent again by itself
 * @property {string} [error] why it failed, for people
 */

/** @param {Attachment} attachment @returns {import("./types.js").Frame} */
function inputOf({ url, content_id, filename, mime_type }) {
  if (/^image\/(?!svg)/.test(mime_type)) return { type: "input.image", image: { url }, content_id };
  if (mime_type.startsWith("audio/")) return { type: "input.audio", audio: { url }, format: mime_type.slice("audio/".length).replace("mpeg", "mp3"), is_final: true, content_id };
  return { type: "input.file", file: { url }, filename, mime_type, content_id };
}

/**
 * @typedef {object} Place
 * @property {string} [replyTo] the message that the turn answers
 * @property {string} [thread] the message to whose thread it belongs
 * @property {boolean} [alsoInChat] whether the chat shows it too
 */

/**
 * Frames of one turn: the inputs, then the request for an answer (UAMP §5.6-§5.12).
 * @param {string} text @param {Attachment[]} attachments @param {Place} place
 * @returns {import("./types.js").Frame[]}
 */
function framesOf(text, attachments, { replyTo, thread, alsoInChat }) {
  const frames = attachments.map(inputOf);
  if (text) frames.unshift({ type: "input.text", text });
  if (replyTo && frames.length) frames[0].reply_to = replyTo;
  if (thread && frames.length) Object.assign(frames[0], { thread, ...(alsoInChat ? { also_in_chat: true } : {}) });
  frames.push({ type: "response.create" });
  return frames.map((frame) => ({ ...frame, event_id: newId() }));
}

export class Outbox {
  /**
   * @param {Storage} storage
   * @param {string} owner whose turns: another person on this device must not send them
   */
  constructor(storage, owner) {
    this._storage = storage;
    this._key = `uamp.outbox.${owner}`;
    /** @type {Turn[]} */
    this.turns = JSON.parse(storage.getItem(this._key) || "[]");
  }

  /** @param {string} chatId @returns {Turn[]} oldest first */
  of(chatId) {
    return this.turns.filter((turn) => turn.chatId === chatId);
  }

  /** @param {string} chatId @param {string} text @param {Attachment[]} attachments @param {Place} [place] @returns {Turn} */
  add(chatId, text, attachments, place = {}) {
    /** @type {Turn} */
    const turn = {
      id: newId(),
      chatId,
      sessionId: null,
      frames: framesOf(text, attachments, place),
      thread: place.thread || "",
      text,
      attachments,
      createdAt: Date.now(),
      state: "waiting",
    };
    this.turns.push(turn);
    this._save();
    return turn;
  }

  /** @param {Turn} turn @param {Partial<Turn>} changes */
  update(turn, changes) {
    Object.assign(turn, changes);
    this._save();
  }

  /** @param {Turn} turn */
  remove(turn) {
    this.turns = this.turns.filter((kept) => kept !== turn);
    this._save();
  }

  /**
   * Return the turn that a stored message acknowledges: the one whose request it names, or, in
   * history, which names none, the oldest one that was sent with its text.
   * @param {string} chatId
   * @param {{content: string, client_event_id?: string}} message one's own
   */
  match(chatId, message) {
    const request = message.client_event_id;
    if (request) return this.of(chatId).find((turn) => turn.frames.at(-1)?.event_id === request);
    const text = (message.content || "").trim();
    return this.of(chatId).find((turn) => ["sent", "held"].includes(turn.state) && turn.text.trim() === text);
  }

  _save() {
    if (this.turns.length) this._storage.setItem(this._key, JSON.stringify(this.turns));
    else this._storage.removeItem(this._key);
  }
}
