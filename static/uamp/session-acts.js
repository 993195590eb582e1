/**
 * What the person of a client does in a chat, as events of its session; what they write is in the
 * outbox.
 */

import { Approvals } from "./approvals.js";
import { newId } from "./ids.js";
import { Payments } from "./payments.js";

/**
 * A little more than the server asks for between two signs: one that comes early is dropped there.
 */
const TYPING_MS = 3_500;

/** @typedef {import("./types.js").Frame} Frame */

export class SessionActs extends EventTarget {
  /** @param {string} chatId */
  constructor(chatId) {
    super();
    this.chatId = chatId;
    /** The tool calls that a person has to allow. */
    this.approvals = new Approvals(() => this.emit("approvals", null));
    /** What one is asked to pay. */
    this.payments = new Payments(() => this.emit("payments", null));
    /** @type {Set<string>} event ids of what was sent about calls */
    this.callEvents = new Set();
    this._typingSentAt = 0;
  }

  /**
   * Send an event, where the session stands.
   * @param {Frame} _frame
   * @returns {boolean} whether it was handed to the socket
   */
  _transmit(_frame) {
    return false;
  }

  /** Tell the page. Called by the handlers of events. @param {string} type @param {any} [detail] */
  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Stop a running answer (UAMP §5.13). @param {string} responseId */
  cancel(responseId) {
    this._transmit({ type: "response.cancel", response_id: responseId });
  }

  /**
   * Have an answer made again; the new one takes its place.
   * @param {string} messageId
   * @returns {boolean} whether it could be sent
   */
  answerAgain(messageId) {
    return this._transmit({ type: "response.create", replaces: messageId });
  }

  /**
   * Change the text of one's question, and have its answers made again.
   * @param {{messageId: string, content: string, revision: number, eventId: string}} edit the same
   *   `eventId` asks once
   * @returns {boolean} whether it could be sent
   */
  editAndAsk({ messageId, content, revision, eventId }) {
    return this._transmit({
      type: "message.edit",
      event_id: eventId,
      message_id: messageId,
      content,
      revision,
      ask_again: true,
    });
  }

  /**
   * Allow or refuse a tool call; the reason is for the agent.
   * @param {import("./approvals.js").Approval} approval
   * @param {boolean} approved
   * @returns {boolean} whether it could be sent
   */
  decide(approval, approved, reason = "") {
    const eventId = newId();
    const isSent = this._transmit({
      type: "tool.approve",
      event_id: eventId,
      call_id: approval.callId,
      response_id: approval.responseId,
      approved,
      ...(reason ? { reason } : {}),
    });
    if (isSent) this.approvals.sent(approval, eventId);
    return isSent;
  }

  /**
   * Pay from one's balance; the same payment again is the same submission.
   * @param {import("./payments.js").Payment} payment
   */
  pay(payment) {
    this._transmit(this.payments.submission(payment));
  }

  /** Say that one is writing, no oftener than the server sends it on (UAMP §5.11). */
  typing(isTyping = true) {
    const now = Date.now();
    if (isTyping ? now - this._typingSentAt < TYPING_MS : this._typingSentAt === 0) return;
    const isSent = this._transmit({
      type: "input.typing",
      is_typing: isTyping,
      chat_id: this.chatId,
    });
    // What was typed before the session stood is said with the next key.
    this._typingSentAt = isTyping && isSent ? now : 0;
  }

  /**
   * Send an event of a call.
   * @param {string} type @param {object} fields
   * @returns {string} its event id; "" where it could not be sent
   */
  call(type, fields) {
    const eventId = newId();
    this.callEvents.add(eventId);
    return this._transmit({ type, event_id: eventId, chat_id: this.chatId, ...fields })
      ? eventId
      : "";
  }

  /**
   * Take a message out of the queue.
   * @param {string} itemId
   * @returns {boolean} whether it could be sent
   */
  removeQueued(itemId) {
    return this._transmit({ type: "queue.remove", item_id: itemId });
  }

  /**
   * Send one's own queued message now.
   * @param {string} itemId
   * @returns {boolean} whether it could be sent
   */
  startQueued(itemId) {
    return this._transmit({ type: "queue.start", item_id: itemId });
  }

  /**
   * Say how far one has read.
   * @param {string} messageId
   * @returns {boolean} whether it could be sent
   */
  markRead(messageId) {
    return this._transmit({ type: "message.read", chat_id: this.chatId, message_id: messageId });
  }
}
