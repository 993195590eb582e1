/**
 * Unacknowledged turns. They survive a reload, and on pages with a secure context also the end of
 * their tab. They are resent under the same event ids: the server answers a repeat with the first
 * result, so nothing doubles.
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
 * @property {"waiting"|"sent"|"held"|"failed"|"unknown"} state `held`: refused for now, and resent
 *   automatically; `unknown`: sent, but the session that knows its ids is gone
 * @property {string} [error] why it failed, for the user
 */

/** @param {Attachment} attachment @returns {import("./types.js").Frame} */
function inputOf({ url, content_id, filename, mime_type }) {
  if (/^image\/(jpeg|png|webp|gif)$/.test(mime_type))
    return { type: "input.image", image: { url }, content_id, alt_text: filename };
  if (mime_type.startsWith("audio/"))
    return {
      type: "input.audio",
      audio: { url },
      format: mime_type.slice("audio/".length).replace("mpeg", "mp3"),
      is_final: true,
      content_id,
    };
  return { type: "input.file", file: { url }, filename, mime_type, content_id };
}

/**
 * @typedef {object} Place
 * @property {string} [replyTo] the message that the turn answers
 * @property {string} [thread] the message to whose thread it belongs
 * @property {boolean} [alsoInChat] whether the chat shows it too
 * @property {boolean} [queue] whether to send it when the running answers have ended
 */

/**
 * Frames of one turn: the inputs, then the request for an answer (UAMP §5.6-§5.12).
 * @param {string} text @param {Attachment[]} attachments @param {Place} place
 * @returns {import("./types.js").Frame[]}
 */
function framesOf(text, attachments, { replyTo, thread, alsoInChat, queue }) {
  const frames = attachments.map(inputOf);
  if (text) frames.unshift({ type: "input.text", text });
  if (replyTo && frames.length) frames[0].reply_to = replyTo;
  if (thread && frames.length)
    Object.assign(frames[0], { thread, ...(alsoInChat ? { also_in_chat: true } : {}) });
  frames.push({ type: "response.create", ...(queue ? { queue } : {}) });
  return frames.map((frame) => ({ ...frame, event_id: newId() }));
}

export class Outbox {
  /**
   * @param {Storage} storage
   * @param {string} owner whose turns: another person on this device must not send them
   * @param {string} [key] under which they are kept
   */
  constructor(storage, owner, key = keyOf(owner)) {
    this._storage = storage;
    this._owner = owner;
    this._key = key;
    this._isOver = false;
    /** @type {Turn[]} */
    this.turns = JSON.parse(storage.getItem(this._key) || "[]");
  }

  /** Adopt the turns that another page left. @param {string} key where that page kept them */
  adopt(key) {
    this.turns.push(...JSON.parse(this._storage.getItem(key) || "[]"));
    this.turns.sort((one, other) => one.createdAt - other.createdAt);
    this._save();
    this._storage.removeItem(key);
  }

  /** Drop everything that the user wrote on this device, in other tabs too: they sign out. */
  forget() {
    this._isOver = true;
    this.turns = [];
    for (const key of keysIn(this._storage, this._owner)) this._storage.removeItem(key);
  }

  /**
   * Discard the turns of a chat.
   * @param {string} chatId of a chat that the user is no longer in
   */
  drop(chatId) {
    this.turns = this.turns.filter((turn) => turn.chatId !== chatId);
    this._save();
  }

  /** @param {string} chatId @returns {Turn[]} oldest first */
  of(chatId) {
    return this.turns.filter((turn) => turn.chatId === chatId);
  }

  /**
   * @param {string} chatId
   * @param {string} text
   * @param {Attachment[]} attachments
   * @param {Place} [place]
   * @returns {Turn}
   */
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
   * Return the turn that a stored message acknowledges: the one whose request it names or, in
   * history, which names none, the oldest one sent with its text.
   * @param {string} chatId
   * @param {{content: string, client_event_id?: string}} message one of the user's own
   */
  match(chatId, message) {
    const request = message.client_event_id;
    if (request) return this.of(chatId).find((turn) => turn.frames.at(-1)?.event_id === request);
    const text = (message.content || "").trim();
    return this.of(chatId).find(
      (turn) => ["sent", "held", "unknown"].includes(turn.state) && turn.text.trim() === text,
    );
  }

  _save() {
    if (this._isOver) return;
    try {
      if (this.turns.length) this._storage.setItem(this._key, JSON.stringify(this.turns));
      else this._storage.removeItem(this._key);
    } catch (error) {
      // The storage is full: the turns are sent, but last only as long as the page.
      if (!(error instanceof DOMException)) throw error;
    }
  }
}

/** @param {string} owner */
const keyOf = (owner) => `uamp.outbox.${owner}`;

/**
 * The storage keys of the outboxes of a user's pages.
 * @param {Storage} storage @param {string} owner
 */
function keysIn(storage, owner) {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) || "");
  return keys.filter((key) => key === keyOf(owner) || key.startsWith(`${keyOf(owner)}.`));
}

/**
 * Open an outbox whose turns outlive its tab, adopting those left by closed tabs of the user. A
 * page holds a lock while it is open, so that no turn is in two open pages. Without locks (a page
 * loaded over plain http from another machine), turns only survive reloads.
 * @param {string} owner
 * @param {{storage?: Storage, locks?: LockManager, ofTab?: Storage}} [places]
 * @returns {Promise<Outbox>}
 */
export async function openOutbox(
  owner,
  { storage = localStorage, locks = navigator.locks, ofTab = sessionStorage } = {},
) {
  if (!locks) return new Outbox(ofTab, owner);
  const own = `${keyOf(owner)}.${newId()}`;
  await new Promise((resolve) => {
    locks.request(own, () => {
      resolve(true);
      return new Promise(() => {});
    });
  });
  const outbox = new Outbox(storage, owner, own);
  for (const key of keysIn(storage, owner)) {
    if (key !== own)
      await locks.request(key, { ifAvailable: true }, (lock) => lock && outbox.adopt(key));
  }
  return outbox;
}
