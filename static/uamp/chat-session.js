/**
 * One chat over one UAMP session: its messages, the agents that answer, and the unsent turns.
 *
 * Made by `UampClient.open`. It outlives connections: after each reconnect it resumes behind the
 * last durable event that it has (`seq`) and the server fills in the rest.
 */

import { Approvals } from "./approvals.js";
import { newId } from "./ids.js";
import { Later } from "./later.js";
import { LiveResponse } from "./live-response.js";
import { Payments } from "./payments.js";

const TYPING_MS = 3_000;
const START_AGAIN_MS = 5_000;
/** `session.created` said the first already; the second is what one wished for. */
const QUIET = new Set(["resync", "nothing_to_cancel"]);
/** Refusals of a turn that pass by themselves: nothing is wrong with the turn (docs/protocol/errors.md). */
const LATER = new Set(["unavailable", "busy"]);
/** The session ended because the person is signed out; the connection closes for the same reason. */
const SIGNED_OUT = new Set(["unauthorized", "token_expired"]);
/** Refusals of a session that pass by themselves. */
const PASSING = new Set(["unavailable", "internal_error", "rate_limited", "busy", "too_many_sessions"]);

/**
 * Events, each with the frame or the object as `detail`:
 * `ready` (the session stands), `reset` (the log is another one: load the history again and call
 * `reconcile`), `message`, `response` (a LiveResponse changed), `response-end`, `read`, `typing`,
 * `presence`, `participants`, `turns` (the outbox of this chat changed), `approvals` (the calls
 * that a person has to allow changed; the detail is one that is new), `payments` (the same for what
 * is asked to be paid), `limit`, `error`.
 */
export class ChatSession extends EventTarget {
  /** @param {import("./client.js").UampClient} client */
  constructor(client, chatId, { epoch = "", after = 0 } = {}) {
    super();
    this.client = client;
    this.chatId = chatId;
    this.epoch = epoch;
    /** Place in the log of the last durable event that was received. */
    this.seq = after;
    /** Events up to here are replayed ones: they happened before the session stood. */
    this.replayedTo = 0;
    this.sessionId = null;
    this.ready = false;
    /** @type {Map<string, LiveResponse>} running answers by response id */
    this.responses = new Map();
    /** @type {Map<string, string>} why answers failed, by response id, for people */
    this.failures = new Map();
    /** @type {Map<string, LiveResponse>} answers that were stopped or failed, by response id */
    this.broken = new Map();
    /** The tool calls that a person has to allow. */
    this.approvals = new Approvals(() => this._emit("approvals", null));
    /** What one is asked to pay. */
    this.payments = new Payments(() => this._emit("payments", null));
    this._ended = new Set();
    /** Ids of the messages that the person of this client wrote. */
    this._ownMessages = new Set();
    this._createId = "";
    this._typingSentAt = 0;
    this._later = new Later(() => this._transmitTurns());
  }

  /**
   * The running answers to messages that the person of this client wrote. An answer whose question
   * the client has not seen is not among them.
   * @returns {LiveResponse[]}
   */
  get ownResponses() {
    return Array.from(this.responses.values()).filter(({ messageId }) => this._ownMessages.has(messageId));
  }

  /**
   * Remember which messages of the loaded history the person of this client wrote.
   * @param {{id: string, sender_id: string, role: string}[]} messages
   */
  noteOwn(messages) {
    for (const message of messages) if (this._isOwn(message)) this._ownMessages.add(message.id);
  }

  /** The turns of this chat that are not acknowledged, oldest first. */
  get turns() {
    return this.client.outbox.of(this.chatId);
  }

  /**
   * Write to the chat. The turn is kept until the server has stored it.
   * @param {{text: string, attachments?: import("./outbox.js").Attachment[]}} written
   */
  send({ text, attachments = [] }) {
    const turn = this.client.outbox.add(this.chatId, text, attachments);
    this._typingSentAt = 0;
    // Behind a turn that is sent again later, so that the chat gets both in the order in which they were written.
    if (!this._later.isPlanned) this._transmitTurn(turn);
    this._emit("turns");
    return turn;
  }

  /** Send a failed turn again, under the same ids. */
  retry(turn) {
    this.client.outbox.update(turn, { state: "waiting", error: undefined });
    this._transmitTurn(turn);
    this._emit("turns");
  }

  /** Give a turn up. */
  discard(turn) {
    this.client.outbox.remove(turn);
    this._emit("turns");
  }

  /** Stop a running answer (UAMP §5.13). */
  cancel(responseId) {
    this._transmit({ type: "response.cancel", response_id: responseId });
  }

  /**
   * Allow or refuse a tool call; the reason is for the agent.
   * @param {import("./approvals.js").Approval} approval
   * @returns {boolean} whether it could be sent
   */
  decide(approval, approved, reason = "") {
    const eventId = newId();
    const isSent = this._transmit({
      type: "tool.approve", event_id: eventId, call_id: approval.callId,
      response_id: approval.responseId, approved, ...(reason ? { reason } : {}),
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

  /** Say that one is writing, at most every three seconds (UAMP §5.11). */
  typing(isTyping = true) {
    const now = Date.now();
    if (isTyping ? now - this._typingSentAt < TYPING_MS : this._typingSentAt === 0) return;
    this._typingSentAt = isTyping ? now : 0;
    this._transmit({ type: "input.typing", is_typing: isTyping, chat_id: this.chatId });
  }

  /** Say how far one has read. Returns whether it could be sent. */
  markRead(messageId) {
    return this._transmit({ type: "message.read", chat_id: this.chatId, message_id: messageId });
  }

  /**
   * After a `reset`: compare the unsent turns with the loaded history, and send the rest.
   * @param {string} epoch of the history
   * @param {{seq: number, sender_id: string, content: string, created_at: string|number}[]} messages
   */
  reconcile(epoch, messages) {
    this.epoch = epoch;
    for (const message of messages) {
      this.seq = Math.max(this.seq, message.seq);
      this._acknowledge(message);
    }
    this._transmitTurns();
  }

  /** Begin, or begin again after a lost connection. Called by the client. */
  start() {
    this._createId = newId();
    const sessionId = this.sessionId || this.turns.find((turn) => turn.sessionId)?.sessionId;
    const resume = { epoch: this.epoch, after: this.seq };
    if (sessionId) resume.session_id = sessionId;
    this.client.transmit({
      type: "session.create",
      event_id: this._createId,
      uamp_version: "1.0",
      session: { modalities: ["text", "image", "file"] },
      chat: this.chatId,
      ...(this.epoch ? { resume } : {}),
    });
  }

  /** The connection is gone. Called by the client. */
  lost() {
    this.ready = false;
    clearTimeout(this._startTimer);
    this._later.reset();
    this._typingSentAt = 0;
  }

  /** Whether an event id is one that this session sent and still waits for. */
  sentEvent(eventId) {
    return eventId === this._createId || Boolean(this._turnOf(eventId));
  }

  /** Take in one frame. Called by the client. */
  receive(event) {
    if (event.type === "session.created") {
      this._created(event);
      return;
    }
    if (event.seq !== undefined) {
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
    }
    const handler = HANDLERS[event.type];
    if (handler) handler(this, event);
  }

  _created(event) {
    const resumedWanted = Boolean(this.epoch);
    this.sessionId = event.session_id || event.session.id;
    this.ready = true;
    this.replayedTo = event.seq || 0;
    if (resumedWanted && event.resumed === false) {
      this.responses.clear();
      this.seq = event.seq || 0;
      this.epoch = event.epoch || "";
      this._emit("reset", event);
      return;
    }
    if (!resumedWanted) this.seq = event.seq || 0;
    this.epoch = event.epoch || this.epoch;
    this.approvals.reconnected();
    for (const payment of this.payments.reconnected()) this.pay(payment);
    this._emit("ready", event);
    this._transmitTurns();
  }

  _transmit(frame) {
    if (!this.ready) return false;
    return this.client.transmit({ ...frame, session_id: this.sessionId });
  }

  _transmitTurns() {
    for (const turn of this.turns) if (turn.state !== "failed") this._transmitTurn(turn);
    this._emit("turns");
  }

  _transmitTurn(turn) {
    if (!this.ready) return;
    // Marked first: a turn that may have reached the server must never look like one that did not.
    this.client.outbox.update(turn, { state: "sent", sessionId: this.sessionId });
    for (const frame of turn.frames) this._transmit(frame);
  }

  _turnOf(eventId) {
    return this.turns.find((turn) => turn.frames.some((frame) => frame.event_id === eventId));
  }

  _acknowledge(message) {
    if (!this._isOwn(message)) return;
    const turn = this.client.outbox.match(this.chatId, message);
    if (!turn) return;
    this.client.outbox.remove(turn);
    if (!this._later.isPlanned) this._later.reset();
    this._emit("turns");
  }

  _isOwn({ role, sender_id: senderId }) {
    return role !== "assistant" && String(senderId) === this.client.userId;
  }

  _response(event) {
    if (!event.response_id || this._ended.has(event.response_id)) return null;
    let response = this.responses.get(event.response_id);
    if (!response) {
      response = new LiveResponse(event.response_id, event);
      this.responses.set(response.id, response);
    }
    return response;
  }

  _changed(response) {
    if (response) this._emit("response", response);
  }

  _emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  _onMessage(event) {
    this.noteOwn([event.message]);
    this._acknowledge(event.message);
    this._emit("message", event);
  }

  _onCreated(event) {
    const response = this._response(event);
    if (!response) return;
    response.agent ||= event.agent || "";
    response.messageId ||= event.message_id || "";
    response.transport ||= event.transport || "";
    this._changed(response);
  }

  _onDelta(event) {
    const response = this._response(event);
    response?.applyDelta(event);
    this._changed(response);
  }

  _onThinking(event) {
    const response = this._response(event) || (event.response_id ? null : this._latest());
    response?.applyThinking(event);
    this._changed(response);
  }

  _onTool(event, apply) {
    const callId = event.target_id || event.call_id;
    for (const response of this.responses.values()) {
      if (response.tool(callId)) {
        apply(response);
        this._changed(response);
      }
    }
  }

  _onApproval(event) {
    const isAsked = event.type === "tool.approval_required";
    const asked = isAsked ? this.approvals.asked(event) : this.approvals.done(event);
    const response = this.responses.get(event.response_id);
    const tool = response?.tool(event.call_id);
    if (tool) {
      tool.asking = isAsked;
      this._changed(response);
    }
    if (asked) this._emit("approvals", asked);
  }

  _onPayment(event) {
    const asked = this.payments.asked(event);
    if (asked) this._emit("payments", asked);
  }

  _onEnd(event) {
    const turn = this._turnOf(event.error?.details?.event_id);
    if (turn) this._refusedTurn(turn, event.error);
    const response = this._response(event);
    if (!response) return;
    this._ended.add(response.id);
    this.responses.delete(response.id);
    response.finish(event);
    this.approvals.responseEnded(response.id);
    this.payments.responseEnded(response.id);
    if (response.error) this.failures.set(response.id, response.error.message || response.error.code);
    if (response.status !== "completed") this.broken.set(response.id, response);
    this._emit("response-end", response);
  }

  _onSessionError(event) {
    const error = event.error || {};
    const cause = error.details?.event_id;
    const turn = this._turnOf(cause);
    if (turn) this._refusedTurn(turn, error);
    else if (this.approvals.refused(cause) || this.payments.notDue(cause)) return;
    else if (QUIET.has(error.code) || (!cause && SIGNED_OUT.has(error.code))) return;
    else if (cause !== this._createId) this._emit("error", { ...error, fatal: false });
    else this._notCreated(error);
  }

  _notCreated(error) {
    if (error.code === "unknown_session" && this.sessionId) {
      this.sessionId = null;
      this.start();
    } else if (PASSING.has(error.code)) {
      const seconds = error.details?.retry_after;
      this._startTimer = setTimeout(() => this.start(), seconds ? 1000 * seconds : START_AGAIN_MS);
    } else this._emit("error", { ...error, fatal: true });
  }

  _refusedTurn(turn, error) {
    // What follows from the first refusal, such as a request whose input was not taken, says nothing of the turn.
    if (turn.state === "held") return;
    const seconds = error.details?.retry_after;
    const isHeld = LATER.has(error.code) && seconds !== undefined;
    if (isHeld) this._later.plan(seconds);
    this.client.outbox.update(turn, isHeld ? { state: "held" } : { state: "failed", error: error.message || error.code });
    this._emit("turns");
  }

  _latest() {
    return Array.from(this.responses.values()).at(-1);
  }
}

const HANDLERS = {
  "message.created": (chat, event) => chat._onMessage(event),
  "response.created": (chat, event) => chat._onCreated(event),
  "response.delta": (chat, event) => chat._onDelta(event),
  thinking: (chat, event) => chat._onThinking(event),
  progress: (chat, event) => chat._onTool(event, (response) => response.applyProgress(event)),
  "tool.call_done": (chat, event) => chat._onTool(event, (response) => response.applyCallDone(event)),
  "tool.approval_required": (chat, event) => chat._onApproval(event),
  "tool.approval_done": (chat, event) => chat._onApproval(event),
  "payment.required": (chat, event) => chat._onPayment(event),
  "payment.accepted": (chat, event) => chat.payments.accepted(event),
  "payment.error": (chat, event) => chat.payments.refused(event),
  "response.done": (chat, event) => chat._onEnd(event),
  "response.cancelled": (chat, event) => chat._onEnd(event),
  "response.error": (chat, event) => chat._onEnd(event),
  "presence.typing": (chat, event) => chat._emit("typing", event),
  "message.read": (chat, event) => chat._emit("read", event),
  "participant.joined": (chat, event) => chat._emit("participants", event),
  "participant.left": (chat, event) => chat._emit("participants", event),
  "chat.updated": (chat, event) => chat._emit("participants", event),
  rate_limit: (chat, event) => chat._emit("limit", event),
  "session.error": (chat, event) => chat._onSessionError(event),
};
