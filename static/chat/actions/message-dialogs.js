/** Dialogs about one message: whether to delete it, the texts that it had, and the answers before it. */

import { announce } from "../dom.js";
import { fullTime } from "../time.js";
import { View, glyph, spinner } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { attempt, isOwn, remove, revisionsOf, versionsOf } from "./acts.js";
import { gettext, interpolate } from "../words.js";

/** A dialog that is drawn for the message that it is opened with. */
class MessageDialog extends View {
  static properties = {
    _entry: { state: true },
    _texts: { state: true },
    _problem: { state: true },
  };

  /** @param {HTMLElement} origin @param {import("../store/entry.js").Entry} entry */
  async _show(origin, entry) {
    this._origin = origin;
    this._entry = entry;
    this._problem = "";
    await this.updateComplete;
    this.querySelector("dialog").showModal();
  }

  _close() {
    this.querySelector("dialog").close();
  }

  /** What opened the dialog may be gone with its message. */
  _closed() {
    if (!this._origin.isConnected) document.querySelector("message-list .log")?.focus({ preventScroll: true });
  }

  _frame(title, body, foot) {
    return html`<dialog class="dialog" aria-labelledby="${this.localName}-title" data-testid=${this.localName} @close=${() => this._closed()}>
      <div class="dialog-form">
        <header><h2 id="${this.localName}-title">${title}</h2>
          <button type="button" class="icon-button" aria-label=${gettext("Close")} title=${gettext("Close")} @click=${() => this._close()}>${glyph("close")}</button></header>
        <div class="dialog-body">${body}${this._problem ? html`<p class="dialog-error" role="alert">${this._problem}</p>` : ""}</div>
        ${foot}
      </div>
    </dialog>`;
  }
}

class DeleteDialog extends MessageDialog {
  open(origin, entry) {
    this._show(origin, entry);
  }

  render() {
    const isOthers = this._entry && !isOwn(this._entry);
    return this._frame(
      gettext("Delete the message?"),
      html`<p>${isOthers
        ? interpolate(gettext("The text and the files of the message of %(name)s are taken from all members, and from what agents read. This cannot be undone."), { name: this._entry.name })
        : gettext("The text and the files of your message are taken from all members, and from what agents read. This cannot be undone.")}</p>`,
      html`<footer><button type="button" class="button" @click=${() => this._close()}>${gettext("Keep it")}</button
        ><button type="button" class="button button-danger" data-testid="delete-now" @click=${() => this._delete()}>Delete</button></footer>`,
    );
  }

  async _delete() {
    this._close();
    if (await attempt(this._origin, () => remove(this._entry))) announce(gettext("Deleted."));
  }
}
customElements.define("delete-dialog", DeleteDialog);

/** A dialog with texts that are read when it opens, the last one first. */
class TextsDialog extends MessageDialog {
  /** @param {HTMLElement} origin @param {import("../store/entry.js").Entry} entry */
  async open(origin, entry) {
    this._texts = null;
    await this._show(origin, entry);
    try {
      this._texts = (await this._read(entry)).reverse();
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      this._problem = error.message;
    }
  }

  render() {
    const texts = (this._texts || []).map((text, place) => html`<li>
      <p class="quiet">${place === 0 ? gettext("Now") : this._nameOf(text, this._texts.length - place)} · <time datetime=${text.created_at}>${fullTime(Date.parse(text.created_at))}</time></p>
      <div class="revision-text" dir="auto">${text.content}</div></li>`);
    return this._frame(this._title, this._texts || this._problem ? html`<ol class="revisions" data-testid=${this._listName}>${texts}</ol>` : spinner(gettext("Loading")), "");
  }
}

class RevisionsDialog extends TextsDialog {
  _title = gettext("Versions of the message");
  _listName = "revisions-list";
  _read = revisionsOf;

  _nameOf({ revision }) {
    return revision === 0 ? gettext("As it was sent") : interpolate(gettext("Version %(n)s"), { n: revision + 1 });
  }
}
customElements.define("revisions-dialog", RevisionsDialog);

class VersionsDialog extends TextsDialog {
  _title = gettext("Answers to the question");
  _listName = "versions-list";
  _read = versionsOf;

  _nameOf({ deleted_at: deletedAt }, number) {
    return deletedAt ? interpolate(gettext("Answer %(n)s, deleted"), { n: number }) : interpolate(gettext("Answer %(n)s"), { n: number });
  }
}
customElements.define("versions-dialog", VersionsDialog);
