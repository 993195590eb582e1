/** The text of one's own message while it is changed, in its place. */

import { pageAt } from "../context.js";
import { announce } from "../dom.js";
import { View } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { attempt, edit } from "./acts.js";
import { gettext } from "../words.js";

/** What is written so far: a message that is scrolled far away leaves the page. */
let written = { id: "", text: "" };

class MessageEditor extends View {
  static properties = {
    entry: { attribute: false },
    _isBusy: { state: true },
  };

  render() {
    return html`<form class="editor" @submit=${(event) => this._submit(event)} @keydown=${(event) => this._key(event)}>
      <textarea class="field" dir="auto" rows="1" aria-label=${gettext("Text of your message")} maxlength="100000" data-testid="editor" @input=${() => this._written()}></textarea>
      <div class="editor-foot">
        <span class="editor-keys">${gettext("Enter saves, Escape cancels")}</span>
        <button type="button" class="button button-quiet" @click=${() => this._close()}>${gettext("Cancel")}</button>
        <button type="submit" class="button button-primary" ?disabled=${this._isBusy} data-testid="save-edit">${gettext("Save")}</button>
      </div>
    </form>`;
  }

  firstUpdated() {
    this._text = this.querySelector("textarea");
    const isBack = written.id === this.entry.id;
    if (!isBack) written = { id: this.entry.id, text: this.entry.content };
    this._text.value = written.text;
    this._grow();
    if (isBack) return;
    this._text.focus();
    this._text.setSelectionRange(this._text.value.length, this._text.value.length);
    this.scrollIntoView({ block: "nearest" });
  }

  _written() {
    written.text = this._text.value;
    this._grow();
  }

  _grow() {
    this._text.style.height = "auto";
    this._text.style.height = `${this._text.scrollHeight + 2}px`;
  }

  _key(event) {
    // While an input method composes, the keys belong to it; some browsers say so only by 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this._close();
    } else if (event.key === "Enter" && !event.shiftKey && event.target === this._text) {
      event.preventDefault();
      this.firstElementChild.requestSubmit();
    }
  }

  async _submit(event) {
    event.preventDefault();
    const text = this._text.value.trim();
    if (text === this.entry.content) {
      this._close();
      return;
    }
    this._isBusy = true;
    if (await attempt(this, () => edit(this.entry, text))) {
      announce(gettext("Saved."));
      this._close();
    }
    this._isBusy = false;
  }

  _close() {
    const row = this.closest("chat-message");
    written = { id: "", text: "" };
    const page = pageAt(this);
    if (page.state.editing === this.entry.id) page.dispatch({ type: "editing", id: "" });
    row?.focus({ preventScroll: true });
  }
}
customElements.define("message-editor", MessageEditor);
