/**
 * The user's acts on questions and answers of the open chat: ask again, stop, decide, and manage
 * the queue.
 */

import { api, page } from "../context.js";
import { decide } from "../decisions.js";
import { announce } from "../dom.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../../uamp/chat-session.js").ChatSession} ChatSession
 * @typedef {import("../../uamp/live-response.js").LiveResponse} LiveResponse
 */

export class AnswerActs {
  /**
   * @param {() => ChatSession|null} session of the open chat
   * @param {(text: string) => void} say shows a text for a moment
   */
  constructor(session, say) {
    this._session = session;
    this._say = say;
  }

  /** @param {{approval: {key: string}, approved: boolean, reason: string}} decision */
  decide(decision) {
    const session = this._session();
    if (session) decide(session, decision, this._say);
  }

  /** @param {import("../../uamp/types.js").Frame} item @param {"start"|"remove"} act */
  onQueue({ id }, act) {
    this._sent(
      act === "start" ? this._session()?.startQueued(id) : this._session()?.removeQueued(id),
    );
  }

  /**
   * The answers cost as much as those to a new question.
   * @param {CustomEvent<Parameters<ChatSession["editAndAsk"]>[0]>} event
   */
  editAndAsk(event) {
    if (!this._sent(this._session()?.editAndAsk(event.detail))) event.preventDefault();
  }

  /**
   * It costs as much as an answer to a new question.
   * @param {import("../store/entry.js").Entry} entry
   */
  answerAgain({ id }) {
    this._sent(this._session()?.answerAgain(id));
  }

  /** Stop one answer, even one that another member asked for. @param {LiveResponse} response */
  stop(response) {
    this._session()?.cancel(response.id);
    announce(
      response.agent
        ? interpolate(gettext("Stopping %(name)s"), { name: response.agent })
        : gettext("Stopping the answer"),
    );
  }

  /** Report if nothing could be sent. @param {unknown} isSent */
  _sent(isSent) {
    if (!isSent) this._say(gettext("You're offline. Try again when you're back online."));
    return Boolean(isSent);
  }

  /**
   * Move a queued message back into the field where it was written.
   * @param {import("../../uamp/types.js").Frame} item
   * @param {import("../composer/composer.js").ChatComposer|null} composer
   */
  async editQueued({ id }, composer) {
    if (!composer?.isEmpty) {
      this._say(gettext("Send or clear what you're writing first."));
      return;
    }
    const { chatId } = page.state;
    const { data } = await api.get(`/chats/${encodeURIComponent(chatId)}/queue`);
    const item = data.find((/** @type {{id: string, text: string}} */ one) => one.id === id);
    if (!item || page.state.chatId !== chatId) return;
    await api.send("DELETE", `/chats/${encodeURIComponent(chatId)}/queue/${id}`);
    // The user may have begun to write while the server answered.
    composer.putBack(item.text);
  }
}
