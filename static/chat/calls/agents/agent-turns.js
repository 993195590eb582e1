/**
 * The state of an agent in a call. It gives one answer at a time, and speech interrupts it. Each
 * utterance is a turn of the chat, and the events of that turn advance the state. Uses neither the
 * document nor audio.
 */

/**
 * @typedef {"listens"|"thinks"|"waits"|"speaks"} State
 * @typedef {import("./speech-detector.js").Utterance} Utterance
 *
 * @typedef {object} Means
 * @property {(utterance: Utterance) => string} speak sends an utterance; returns the event id of
 *   its turn, "" where there is no connection
 * @property {(responseId: string) => void} cancel stops an answer
 * @property {(audio: string) => void} play plays a piece of an answer, base64
 * @property {() => void} hush stops playback
 * @property {(state: State) => void} changed
 * @property {(what: "offline"|"waits"|"lost") => void} said notifies the host
 */

export class AgentTurns {
  /** @param {Means} means */
  constructor(means) {
    this._means = means;
    /** @type {State} */
    this.state = "listens";
    this._eventId = "";
    this._messageId = "";
    this._responseId = "";
    this._isWaiting = false;
    this._isPlaying = false;
    /** Whether the current answer was interrupted: the rest of it is not played. */
    this._isHushed = false;
    /** The utterance received while an answer was being stopped. @type {Utterance|null} */
    this._next = null;
  }

  /** The id of the current answer; "" for none. */
  get responseId() {
    return this._responseId;
  }

  /** Speech began: a speaking agent stops. */
  began() {
    if (this._isPlaying) this._interrupt();
  }

  /** @param {Utterance} utterance */
  said(utterance) {
    if (this._isWaiting) {
      this._means.said("waits");
    } else if (this._eventId) {
      this._next = utterance;
      this._interrupt();
    } else this._speak(utterance);
  }

  /** @param {{id: string, client_event_id?: string}} message that was stored in the chat */
  message({ id, client_event_id: eventId }) {
    if (eventId && eventId === this._eventId) this._messageId = id;
  }

  /** @param {{id: string, messageId: string}} response that began or grew */
  response({ id, messageId }) {
    if (!this._messageId || messageId !== this._messageId || this._responseId) return;
    this._responseId = id;
    if (this._next) this._means.cancel(id);
  }

  /** A piece of sound. @param {string} responseId @param {string} audio base64 */
  sound(responseId, audio) {
    if (responseId !== this._responseId || this._next || this._isHushed) return;
    this._isPlaying = true;
    this._means.play(audio);
    this._settle();
  }

  /**
   * The answers that wait for a payment or an approval.
   * @param {string[]} responseIds
   */
  waiting(responseIds) {
    this._isWaiting = Boolean(this._responseId) && responseIds.includes(this._responseId);
    this._settle();
  }

  /** @param {string} responseId of an answer that ended */
  ended(responseId) {
    if (!responseId || responseId !== this._responseId) return;
    this._over();
  }

  /** Everything received was played. */
  played() {
    this._isPlaying = false;
    this._settle();
  }

  /**
   * The server rejected a turn.
   * @param {string} eventId
   * @returns {boolean} whether it was this agent's turn
   */
  refused(eventId) {
    if (!eventId || eventId !== this._eventId) return false;
    this._next = null;
    this._over();
    return true;
  }

  /**
   * A budget, or a member who silenced the agents, kept it from answering a message.
   * @param {string} messageId
   */
  stopped(messageId) {
    if (!messageId || messageId !== this._messageId || this._responseId) return;
    this._next = null;
    this._over();
  }

  /** The connection has been back for a while: an unconfirmed turn did not arrive. */
  reconnected() {
    if (!this._messageId) this.lost();
  }

  /** The turn and its answer are gone, such as with the log of the chat. */
  lost() {
    if (!this._eventId) return;
    this._means.said("lost");
    this._over();
  }

  /** The agent left the call, or has another host. */
  close() {
    this._next = null;
    this._interrupt();
  }

  /** @param {Utterance} utterance */
  _speak(utterance) {
    this._eventId = this._means.speak(utterance);
    this._isHushed = false;
    if (!this._eventId) this._means.said("offline");
    this._settle();
  }

  _interrupt() {
    this._isPlaying = false;
    this._isHushed = true;
    this._means.hush();
    if (this._responseId) this._means.cancel(this._responseId);
    this._settle();
  }

  _over() {
    this._eventId = this._messageId = this._responseId = "";
    this._isWaiting = false;
    const next = this._next;
    this._next = null;
    if (next) this._speak(next);
    else this._settle();
  }

  _settle() {
    /** @type {State} */
    let state = "listens";
    if (this._isWaiting) state = "waits";
    else if (this._isPlaying) state = "speaks";
    else if (this._eventId) state = "thinks";
    if (state === this.state) return;
    this.state = state;
    this._means.changed(state);
  }
}
