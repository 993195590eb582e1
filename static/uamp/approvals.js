/**
 * The tool calls of a chat that wait for approval, folded from `tool.approval_required` and
 * `tool.approval_done`.
 */

import { RepeatedRequests } from "./timers.js";

/**
 * @typedef {object} Approval
 * @property {string} key
 * @property {string} callId
 * @property {string} responseId
 * @property {string} agent the agent that wants to call the tool
 * @property {string} name the name of the tool
 * @property {string} arguments JSON
 * @property {string} userId the person who asked for the work; "" when unknown
 * @property {number} expiresAt Unix seconds, 0 for never
 * @property {string} [thread] in which it is asked; "" for the chat
 * @property {"asking"|"sent"|"closed"} state
 * @property {{approved: boolean, userId: string, username: string}|null} outcome
 */

export class Approvals {
  /** @param {() => void} changed called after each change */
  constructor(changed) {
    this._changed = changed;
    /** @type {Map<string, Approval>} */
    this._all = new Map();
    /** @type {Map<string, Approval>} by the event id of the answer */
    this._sent = new Map();
    this._repeats = new RepeatedRequests((keys) => this._giveUp(keys));
    /** @type {Set<string>} closed only because the server did not repeat them */
    this._givenUp = new Set();
  }

  /** @returns {Approval[]} in the order of asking */
  get list() {
    return Array.from(this._all.values());
  }

  /**
   * Take `tool.approval_required`.
   * @param {import("./types.js").Frame} event
   * @returns {Approval|null} the approval when it is requested for the first time, or again after
   *   it was given up
   */
  asked(event) {
    const key = `${event.response_id} ${event.call_id}`;
    this._repeats.repeated(key);
    const wasGivenUp = this._givenUp.delete(key);
    if (this._all.has(key) && !wasGivenUp) return null;
    /** @type {Approval} */
    const approval = {
      key,
      callId: event.call_id,
      responseId: event.response_id,
      agent: event.agent || "An agent",
      name: event.name,
      arguments: event.arguments || "{}",
      userId: String(event.user_id || ""),
      expiresAt: event.expires_at || 0,
      state: "asking",
      outcome: null,
    };
    this._all.set(key, approval);
    this._changed();
    return approval;
  }

  /** Take `tool.approval_done`. @param {import("./types.js").Frame} event */
  done({ response_id: responseId, call_id: callId, approved, user_id: userId, username }) {
    this._close(`${responseId} ${callId}`, {
      approved,
      userId: String(userId || ""),
      username: username || "",
    });
  }

  /** An answer was sent under an event id. @param {Approval} approval @param {string} eventId */
  sent(approval, eventId) {
    approval.state = "sent";
    this._sent.set(eventId, approval);
    this._changed();
  }

  /**
   * The server refused the answer with this event id: it came too late.
   * @param {string} eventId
   * @returns {boolean} whether it was sent from here
   */
  refused(eventId) {
    const approval = this._sent.get(eventId);
    if (approval) this._close(approval.key, null);
    return Boolean(approval);
  }

  /** The answer with the call ended. @param {string} responseId */
  responseEnded(responseId) {
    for (const approval of this.list) {
      if (approval.responseId === responseId) this._close(approval.key, null);
    }
  }

  /** The connection is gone. */
  lost() {
    this._repeats.stop();
  }

  /** The connection is back: open requests will be repeated. */
  reconnected() {
    const open = this.list.filter(({ state }) => state !== "closed");
    this._repeats.expect(open.map(({ key }) => key));
    const sent = open.filter(({ state }) => state === "sent");
    for (const approval of sent) approval.state = "asking";
    if (sent.length) this._changed();
  }

  /** Drop all approvals: the log is another one, and the server sends the open requests again. */
  forget() {
    this._repeats.stop();
    this._givenUp.clear();
    this._sent.clear();
    if (!this._all.size) return;
    this._all.clear();
    this._changed();
  }

  /** Drop decided approvals; their answers have moved on. */
  clearClosed() {
    const before = this._all.size;
    for (const approval of this.list)
      if (approval.state === "closed") this._all.delete(approval.key);
    if (this._all.size !== before) this._changed();
  }

  /** @param {Set<string>} keys */
  _giveUp(keys) {
    for (const { key, state } of this.list) {
      if (!keys.has(key) || state === "closed") continue;
      this._close(key, null);
      this._givenUp.add(key);
    }
  }

  /** @param {string} key @param {Approval["outcome"]} outcome */
  _close(key, outcome) {
    this._givenUp.delete(key);
    const approval = this._all.get(key);
    if (!approval || approval.state === "closed") return;
    Object.assign(approval, { state: "closed", outcome });
    this._changed();
  }
}
