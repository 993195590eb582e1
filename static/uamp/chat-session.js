/**
 * One chat over one UAMP session: its messages, the agents that answer, and the unsent turns.
 *
 * Created by `UampClient.open`. It outlives connections: after each reconnect it resumes after the
 * last durable event that it has (`seq`), and the server sends the rest.
 */

import { HANDLERS } from "./chat-events.js";
import { newId } from "./ids.js";
import { Later } from "./timers.js";
import { SessionActs } from "./session-acts.js";
import { SharedState } from "./shared-state.js";

const START_AGAIN_MS = 5_000;
/** Temporary refusals of a session. */
const PASSING = new Set([
  "unavailable",
  "internal_error",
  "rate_limited",
  "busy",
  "too_many_sessions",
]);

/**
 * @typedef {import("./live-response.js").LiveResponse} LiveResponse
 * @typedef {import("./outbox.js").Turn} Turn
 * @typedef {import("./types.js").Frame} Frame
 */

/**
 * Events, each with the frame or the object as `detail`: `ready` (the session is open and the page
 * has its log), `reset` (the log is a different one: load the history again and call `reconcile`,
 * which emits `ready`), `message`, `act` (a
 * member edited, deleted, pinned or reacted to a message), `response` (a LiveResponse changed),
 * `response-end`, `read`, `typing`, `presence`, `participants`, `turns` (the outbox of this chat
 * changed), `approvals` (the calls that wait for approval changed; the detail is a new one),
 * `payments` (the same for payments), `queue` (the messages that are sent after the running
 * answers), `state` (the shared state of the chat), `fact` (an entry of the log other than a
 * message), `call-error` (an event of a call was refused), `sound` (a piece of a spoken answer),
 * `transcript` (the transcript of a message's sounds: `message_id`, `transcript`), `limit`,
 * `error`.
 */
export class ChatSession extends SessionActs {
  /**
   * @param {import("./client.js").UampClient} client
   * @param {string} chatId
   * @param {{epoch?: string, after?: number}} [from] the last event that the page has
   */
  constructor(client, chatId, { epoch = "", after = 0 } = {}) {
    super(chatId);
    this.client = client;
    this.epoch = epoch;
    /** The log position of the last durable event received. */
    this.seq = after;
    /** Events up to this position are replayed: they happened before the session opened. */
    this.replayedTo = 0;
    /** @type {string|null} */
    this.sessionId = null;
    this.ready = false;
    /** Whether the session receives nothing until the chat is opened again. */
    this.isSuspended = false;
    /** @type {Map<string, LiveResponse>} running answers by response id */
    this.responses = new Map();
    /** @type {Map<string, string>} why answers are incomplete, by response id, for the user */
    this.failures = new Map();
    /**
     * The signatures of answers whose messages have not come yet, by response id.
     * @type {Map<string, string>}
     */
    this.signatures = new Map();
    /** @type {Map<string, LiveResponse>} answers that were stopped or failed, by response id */
    this.broken = new Map();
    /** The state shared by the clients and agents of the chat. */
    this.state = new SharedState();
    /**
     * The messages that are sent when the running answers have ended, the next one first.
     * @type {import("./types.js").Frame[]}
     */
    this.queue = [];
    this._queueAt = 0;
    /** @type {Set<string>} */
    this.ended = new Set();
    /** Ids of the user's own messages. */
    /** @type {Set<string>} */
    this._ownMessages = new Set();
    this.createId = "";
    this._later = new Later(() => this._transmitTurns());
  }

  /**
   * The running answers to the user's own messages, except answers to questions that the client has
   * not seen.
   * @returns {LiveResponse[]}
   */
  get ownResponses() {
    return Array.from(this.responses.values()).filter(({ messageId }) =>
      this._ownMessages.has(messageId),
    );
  }

  /**
   * Remember which messages of the loaded history are the user's own.
   * @param {{id: string, sender_id: string, role: string}[]} messages
   */
  noteOwn(messages) {
    for (const message of messages) if (this._isOwn(message)) this._ownMessages.add(message.id);
  }

  /** The unacknowledged turns of this chat, oldest first. */
  get turns() {
    return this.client.outbox.of(this.chatId);
  }

  /**
   * Write to the chat. The turn is kept until the server has stored it.
   * @param {{text: string, attachments?: import("./outbox.js").Attachment[]} &
   *   import("./outbox.js").Place} written
   */
  send({ text, attachments = [], ...place }) {
    // Databases reject NUL: the server stores this character instead, and the turn is later matched
    // by its text.
    const turn = this.client.outbox.add(
      this.chatId,
      text.replaceAll("\0", "\uFFFD"),
      attachments,
      place,
    );
    this._typingSentAt = 0;
    // Wait behind a turn that is resent later, so that the chat gets both in order.
    if (!this._later.isPlanned) this._transmitTurn(turn);
    this.emit("turns");
    return turn;
  }

  /**
   * Resend a failed turn, or one of unknown fate, under the same ids.
   * @param {Turn} turn
   */
  retry(turn) {
    this.client.outbox.update(turn, { state: "waiting", error: undefined });
    this._transmitTurn(turn);
    this.emit("turns");
  }

  /** Discard a turn. @param {Turn} turn */
  discard(turn) {
    this.client.outbox.remove(turn);
    this.emit("turns");
  }

  /** Update the queue of the chat; called by event handlers. @param {Frame} event */
  takeQueue({ at, items = [] }) {
    if (at && at < this._queueAt) return;
    this._queueAt = at;
    this.queue = items;
    for (const { client_event_id: eventId } of items) {
      const turn = this.turnOf(eventId);
      if (turn) this.discard(turn);
    }
    this.emit("queue", items);
  }

  /**
   * After a `reset`: compare the unsent turns with the loaded history, and send the rest.
   * @param {string} epoch of the history
   * @param {(import("./types.js").StoredMessage & {seq: number})[]} messages
   */
  reconcile(epoch, messages) {
    this.epoch = epoch;
    for (const message of messages) {
      this.seq = Math.max(this.seq, message.seq);
      this.acknowledge(message);
    }
    if (this.ready) this.emit("ready");
    this._transmitTurns();
  }

  /** Start, or resume after a lost connection. Called by the client. */
  start() {
    this.isSuspended = false;
    this.createId = newId();
    const sessionId = this.sessionId || this.turns.find((turn) => turn.sessionId)?.sessionId;
    const resume = {
      epoch: this.epoch,
      after: this.seq,
      ...(sessionId ? { session_id: sessionId } : {}),
    };
    this.client.transmit({
      type: "session.create",
      event_id: this.createId,
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
    this.approvals.lost();
    this.payments.lost();
    this._typingSentAt = 0;
  }

  /** The connection only has room for other chats. Called by the client. */
  suspend() {
    this.lost();
    this.isSuspended = true;
  }

  /**
   * Whether an event id belongs to an unacknowledged event of this session.
   * @param {string} eventId
   */
  sentEvent(eventId) {
    return eventId === this.createId || Boolean(this.turnOf(eventId));
  }

  /** Handle one frame. @param {Frame} event */
  receive(event) {
    if (event.type === "session.created") {
      this._created(event);
      return;
    }
    if (event.seq !== undefined) {
      if (event.seq <= this.seq) return;
      this.seq = event.seq;
    }
    HANDLERS[event.type]?.(this, event);
  }

  /** @param {Frame} event */
  _created(event) {
    const resumedWanted = Boolean(this.epoch);
    this.sessionId = event.session_id || event.session.id;
    this._sortOutTurns();
    this.ready = true;
    this.replayedTo = event.seq || 0;
    this.state.take(event);
    this.emit("state", this.state);
    // The server sends a new session its queue, unless it is empty.
    this.takeQueue({ type: "queue.updated", at: 0 });
    if (resumedWanted && event.resumed === false) {
      this.responses.clear();
      this.approvals.forget();
      this.payments.forget();
      this.seq = event.seq || 0;
      this.epoch = event.epoch || "";
      this.emit("reset", event);
      return;
    }
    if (!resumedWanted) this.seq = event.seq || 0;
    this.epoch = event.epoch || this.epoch;
    this.approvals.reconnected();
    for (const payment of this.payments.reconnected()) this.pay(payment);
    this.emit("ready", event);
    this._transmitTurns();
  }

  /** @override @param {Frame} frame @returns {boolean} whether it was handed to the socket */
  _transmit(frame) {
    if (!this.ready) return false;
    return this.client.transmit({ ...frame, session_id: this.sessionId });
  }

  _transmitTurns() {
    for (const turn of this.turns)
      if (!["failed", "unknown"].includes(turn.state)) this._transmitTurn(turn);
    this.emit("turns");
  }

  /**
   * If the session that knew a turn's ids is gone, resending it would create another message: for
   * turns that may have been stored, the user decides, unless the log shows them.
   */
  _sortOutTurns() {
    const { outbox } = this.client;
    for (const turn of this.turns) {
      if (!turn.sessionId || turn.sessionId === this.sessionId) continue;
      outbox.update(
        turn,
        turn.state === "sent" ? { state: "unknown", sessionId: null } : { sessionId: null },
      );
    }
  }

  /** @param {Turn} turn */
  _transmitTurn(turn) {
    if (!this.ready) return;
    // Mark it first: a turn that may have reached the server must never look unsent.
    this.client.outbox.update(turn, { state: "sent", sessionId: this.sessionId });
    for (const frame of turn.frames) this._transmit(frame);
  }

  /** The turn with an event id. @param {string} eventId */
  turnOf(eventId) {
    return this.turns.find((turn) => turn.frames.some((frame) => frame.event_id === eventId));
  }

  /**
   * A message is stored: complete its turn, if it is the user's own.
   * @param {import("./types.js").StoredMessage} message
   */
  acknowledge(message) {
    if (!this._isOwn(message)) return;
    const turn = this.client.outbox.match(this.chatId, message);
    if (!turn) return;
    this.client.outbox.remove(turn);
    if (!this._later.isPlanned) this._later.reset();
    this.emit("turns");
  }

  /** @param {{role: string, sender_id: string}} message */
  _isOwn({ role, sender_id: senderId }) {
    return role !== "assistant" && String(senderId) === this.client.userId;
  }

  /**
   * The session could not be created. Called by event handlers, like everything below.
   * @param {import("./types.js").ErrorBody} error
   */
  notCreated(error) {
    if (error.code === "unknown_session" && this.sessionId) {
      this.sessionId = null;
      this.start();
    } else if (PASSING.has(error.code || "")) {
      const seconds = error.details?.retry_after;
      this._startTimer = setTimeout(() => this.start(), seconds ? 1000 * seconds : START_AGAIN_MS);
    } else this.emit("error", { ...error, fatal: true });
  }

  /**
   * The server refused a turn for now: resend it automatically.
   * @param {Turn} turn
   * @param {number} seconds
   */
  hold(turn, seconds) {
    this._later.plan(seconds);
    this.client.outbox.update(turn, { state: "held" });
    this.emit("turns");
  }

  /** The server refused a turn. @param {Turn} turn @param {string} error why, for the user */
  fail(turn, error) {
    this.client.outbox.update(turn, { state: "failed", error });
    this.emit("turns");
  }
}
