/** Dialogs about one message: the confirmation before deleting it, and its former texts. */

import { isApiError } from "../api.js";
import { part } from "../dom.js";
import { fullTime } from "../text/time.js";
import { View, glyph, spinner } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { isOwn, revisionsOf } from "./acts.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../store/entry.js").Entry} Entry */
/**
 * @typedef {{revision: number, content: string, created_at: string}} Revision a former text of a
 *   message, as REST returns it
 */

/** A dialog rendered for the message passed to `open`. */
class MessageDialog extends View {
  static properties = {
    _entry: { state: true },
    _texts: { state: true },
    _problem: { state: true },
  };

  constructor() {
    super();
    /** @type {Entry|null} */
    this._entry = null;
    /** @type {HTMLElement|null} the element that opened it */
    this._origin = null;
    /** @type {Revision[]|null} null until they are read */
    this._texts = null;
    this._problem = "";
  }

  /** @returns {HTMLDialogElement} */
  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  /** @param {HTMLElement} origin @param {Entry} entry */
  async _show(origin, entry) {
    this._origin = origin;
    this._entry = entry;
    this._problem = "";
    await this.updateComplete;
    this._dialog.showModal();
  }

  _close() {
    this._dialog.close();
  }

  /** Focus the log if the opener is gone, deleted with its message. */
  _closed() {
    if (!this._origin?.isConnected)
      /** @type {HTMLElement|null} */ (document.querySelector("message-list .log"))?.focus({
        preventScroll: true,
      });
  }

  /** @param {string} title @param {unknown} body @param {unknown} foot */
  _frame(title, body, foot) {
    return html`<dialog
      class="dialog"
      aria-labelledby="${this.localName}-title"
      data-testid=${this.localName}
      @close=${() => this._closed()}
    >
      <div class="dialog-form">
        <header>
          <h2 id="${this.localName}-title">${title}</h2>
          <button
            type="button"
            class="icon-button"
            aria-label=${gettext("Close")}
            title=${gettext("Close")}
            @click=${() => this._close()}
          >
            ${glyph("close")}
          </button>
        </header>
        <div class="dialog-body">
          ${body}${
            this._problem ? html`<p class="dialog-error" role="alert">${this._problem}</p>` : ""
          }
        </div>
        ${foot}
      </div>
    </dialog>`;
  }
}

export class DeleteDialog extends MessageDialog {
  /** @param {HTMLElement} origin @param {Entry} entry */
  open(origin, entry) {
    this._show(origin, entry);
  }

  render() {
    const entry = this._entry;
    return this._frame(
      gettext("Delete message?"),
      html`<p>
        ${
          entry && !isOwn(entry)
            ? interpolate(
                gettext(
                  "This deletes %(name)s's message and its files for everyone. Agents will no longer see it either.",
                ),
                { name: entry.name },
              )
            : gettext(
                "This deletes your message and its files for everyone. Agents will no longer see it either.",
              )
        }
      </p>`,
      html`<footer>
        <button type="button" class="button" @click=${() => this._close()}>
          ${gettext("Cancel")}</button
        ><button
          type="button"
          class="button button-danger"
          data-testid="delete-now"
          @click=${() => this._delete()}
        >
          ${gettext("Delete")}
        </button>
      </footer>`,
    );
  }

  _delete() {
    const { _entry: entry, _origin: origin } = this;
    this._close();
    if (entry && origin) part("undo-bar").removeLater(entry, origin);
  }
}
customElements.define("delete-dialog", DeleteDialog);

/** The texts that a message had, newest first. They are loaded when the dialog opens. */
export class RevisionsDialog extends MessageDialog {
  /** @param {HTMLElement} origin @param {Entry} entry */
  async open(origin, entry) {
    this._texts = null;
    await this._show(origin, entry);
    try {
      this._texts = (await revisionsOf(entry)).reverse();
    } catch (error) {
      if (!isApiError(error)) throw error;
      this._problem = error.message;
    }
  }

  render() {
    const texts = this._texts ?? [];
    const rows = texts.map(
      (text, place) =>
        html`<li>
          <p class="quiet">
            ${place === 0 ? gettext("Now") : nameOf(text)} ·
            <time datetime=${text.created_at}>${fullTime(Date.parse(text.created_at))}</time>
          </p>
          <div class="revision-text" dir="auto">${text.content}</div>
        </li>`,
    );
    return this._frame(
      gettext("Versions of the message"),
      this._texts || this._problem
        ? html`<ol class="revisions" data-testid="revisions-list">
            ${rows}
          </ol>`
        : spinner(gettext("Loading")),
      "",
    );
  }
}
customElements.define("revisions-dialog", RevisionsDialog);

/** @param {Revision} text that is not the last one */
const nameOf = ({ revision }) =>
  revision === 0 ? gettext("Original") : interpolate(gettext("Version %(n)s"), { n: revision + 1 });
