/** The user's acts in a chat, sent as events of its session; messages go through the outbox. */

import { Approvals } from "./approvals.js";
import { newId } from "./ids.js";
import { Payments } from "./payments.js";

/** The interval of typing signals, slightly above the server's minimum: it drops earlier ones. */
const TYPING_MS = 3_500;

/** @typedef {import("./types.js").Frame} Frame */

export class SessionActs extends EventTarget {
  /** @param {string} chatId */
  constructor(chatId) {
    super();
    this.chatId = chatId;
    /** The tool calls that wait for approval. */
    this.approvals = new Approvals(() => this.emit("approvals", null));
    /** The payments requested from the user. */
    this.payments = new Payments(() => this.emit("payments", null));
    /** @type {Set<string>} event ids of what was sent about calls */
    this.callEvents = new Set();
    this._typingSentAt = 0;
  }

  /**
   * Send an event, if the session is open.
   * @param {Frame} _frame
   * @returns {boolean} whether it was handed to the socket
   */
  _transmit(_frame) {
    return false;
  }

  /** Notify the page. Called by event handlers. @param {string} type @param {any} [detail] */
  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Stop a running answer (UAMP §5.13). @param {string} responseId */
  cancel(responseId) {
    this._transmit({ type: "response.cancel", response_id: responseId });
  }

  /**
   * Regenerate an answer; the new one replaces it.
   * @param {string} messageId
   * @returns {boolean} whether it could be sent
   */
  answerAgain(messageId) {
    return this._transmit({ type: "response.create", replaces: messageId });
  }

  /**
   * Edit a question of the user's own, and regenerate its answers.
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
   * Pay from the balance; repeating a payment repeats its submission.
   * @param {import("./payments.js").Payment} payment
   */
  pay(payment) {
    this._transmit(this.payments.submission(payment));
  }

  /** Signal that the user is typing, no more often than the server forwards it (UAMP §5.11). */
  typing(isTyping = true) {
    const now = Date.now();
    if (isTyping ? now - this._typingSentAt < TYPING_MS : this._typingSentAt === 0) return;
    const isSent = this._transmit({
      type: "input.typing",
      is_typing: isTyping,
      chat_id: this.chatId,
    });
    // If the session was not open yet, the next keystroke sends the signal.
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
   * Send one of the user's own queued messages now.
   * @param {string} itemId
   * @returns {boolean} whether it could be sent
   */
  startQueued(itemId) {
    return this._transmit({ type: "queue.start", item_id: itemId });
  }

  /**
   * Report the user's read position.
   * @param {string} messageId
   * @returns {boolean} whether it could be sent
   */
  markRead(messageId) {
    return this._transmit({ type: "message.read", chat_id: this.chatId, message_id: messageId });
  }
}
