/** The signed-in user's settings, stored on the server and shared by all of their devices. */

import { isApiError } from "../api.js";
import { setAppearance } from "./appearance.js";

/**
 * @typedef {object} Values
 * @property {string} theme
 * @property {string} density
 * @property {boolean} read_receipts
 * @property {boolean} typing_notices
 * @property {"all"|"mentions"|"none"} notifications
 * @property {boolean} notification_text
 * @property {boolean} notification_sound
 * @property {boolean} mail_unread
 * @property {string} quiet_from as HH:MM
 * @property {string} quiet_until
 * @property {string} time_zone
 * @property {string} send_key "enter" or "ctrl_enter"
 * @property {boolean} follow_answers
 * @property {string} language of the pages, from their next load on; empty for the browser's
 */

/** Event: `change`, also for changes made in another tab or on another device. */
export class Settings extends EventTarget {
  /**
   * @param {{get: (path: string) => Promise<any>, send: (method: string, path: string, body:
   *   object) => Promise<any>}} api
   * @param {Values} values
   * @param {EventTarget} client of UAMP
   */
  constructor(api, values, client) {
    super();
    this._api = api;
    this.values = values;
    // Another tab or device may have changed them, even while there was no connection.
    client.addEventListener(
      "person",
      (/** @type {any} */ { detail }) => detail.subject === "settings" && this._refresh(),
    );
    client.addEventListener("watched", () => this._refresh());
  }

  /**
   * Change some of them. If it throws ApiError, nothing has changed.
   * @param {Partial<Values>} part
   */
  async change(part) {
    const values = await this._api.send("PATCH", "/me/settings", part);
    this._take(values);
  }

  async _refresh() {
    try {
      this._take(await this._api.get("/me/settings"));
    } catch (/** @type {any} */ error) {
      // The page reports a lost connection or sign-out elsewhere.
      if (!isApiError(error)) throw error;
    }
  }

  /** @param {Values} values */
  _take(values) {
    if (JSON.stringify(values) === JSON.stringify(this.values)) return;
    this.values = values;
    setAppearance(values);
    this.dispatchEvent(new Event("change"));
  }
}
