/** The base of dialogs: rendered when opened, with errors shown inside. */

import { isApiError } from "../api.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

export class DialogView extends View {
  /** @type {import("../../vendor/lit/lit.js").PropertyDeclarations} */
  static properties = { _error: { state: true }, _isBusy: { state: true } };

  constructor() {
    super();
    /** Why the last attempt failed; "" after one that did not. */
    this._error = "";
    this._isBusy = false;
  }

  /** @returns {HTMLDialogElement} */
  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  /** Render the dialog with its new properties, and show it. */
  async _show() {
    this._error = "";
    this._isBusy = false;
    await this.updateComplete;
    this._dialog.showModal();
  }

  _close() {
    this._dialog.close();
  }

  /** @param {string} id of the heading that labels the dialog @param {string} title */
  _head(id, title) {
    return html`<header>
      <h2 id=${id}>${title}</h2>
      <button
        type="button"
        class="icon-button"
        aria-label=${gettext("Close")}
        title=${gettext("Close")}
        @click=${() => this._close()}
      >
        ${glyph("close")}
      </button>
    </header>`;
  }

  _problem() {
    return this._error ? html`<p class="dialog-error" role="alert">${this._error}</p>` : nothing;
  }

  /**
   * Do something with the buttons disabled meanwhile, and show any error. A disabled button loses
   * the focus, which is restored here.
   * @param {() => Promise<void>} work
   */
  async _attempt(work) {
    const had = document.activeElement;
    this._error = "";
    this._isBusy = true;
    try {
      await work();
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
    } finally {
      this._isBusy = false;
    }
    await this.updateComplete;
    const now = document.activeElement;
    if (
      had instanceof HTMLElement &&
      this._dialog.open &&
      this.contains(had) &&
      now !== had &&
      (now === document.body || now?.contains(had))
    )
      had.focus();
  }
}
