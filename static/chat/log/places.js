/** Moves the reader to other places of the log. */

import { isApiError } from "../api.js";
import { page } from "../context.js";
import { gettext } from "../words.js";

export class Places {
  /**
   * @param {import("../store/history.js").History} history
   * @param {(text: string) => void} say shows a text for a moment
   */
  constructor(history, say) {
    this._history = history;
    this._say = say;
  }

  /**
   * Load the newest messages, or those around a message.
   * @param {string} id "" for the newest
   * @param {Map<string, string>} failures why answers were not completed, by response id
   */
  async begin(id, failures) {
    if (id && (await this.isShown(id))) return;
    await this._history.load(failures);
  }

  /** Show a message of the chat, loading its place if needed. @param {string} id */
  async show(id) {
    if (page.state.entries.some((entry) => entry.id === id)) page.dispatch({ type: "target", id });
    else await this.goTo(() => this.isShown(id));
  }

  /**
   * Show a message of the open chat.
   * @param {string} id
   * @returns {Promise<boolean>} whether the chat has the message
   */
  async isShown(id) {
    try {
      await this._history.loadAround(id);
    } catch (error) {
      if (!isApiError(error) || (error.status !== 404 && error.status !== 400)) throw error;
      this._say(gettext("That message isn't in this chat."));
      return false;
    }
    page.dispatch({ type: "target", id });
    return true;
  }

  /**
   * Go to another place of the chat; if it cannot be loaded, stay.
   * @param {() => Promise<unknown>} load
   */
  async goTo(load) {
    try {
      await load();
    } catch (error) {
      if (!isApiError(error)) throw error;
      this._say(error.message);
    }
  }
}
