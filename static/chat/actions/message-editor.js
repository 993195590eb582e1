/** Edits the text of the user's own message in place. */

import { pageAt } from "../context.js";
import { announce } from "../dom.js";
import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { newId } from "../../uamp/ids.js";
import { attempt, edit, mayAskEdited } from "./acts.js";
import { gettext } from "../words.js";

/**
 * The text so far, which outlives the editor: a message scrolled far away is removed from the page.
 */
let written = { id: "", text: "" };

/**
 * Fires (bubbling) `edit-and-ask` with the new text of a question whose answers are to be
 * regenerated.
 */
class MessageEditor extends View {
  static properties = {
    entry: { attribute: false },
    /** The edit sent with the repeated question; it is done once the message has this text. */
    _asked: { state: true },
    _isBusy: { state: true },
  };

  constructor() {
    super();
    /** Set before it is drawn. @type {import("../store/entry.js").Entry} */
    this.entry = /** @type {import("../store/entry.js").Entry} */ (
      /** @type {unknown} */ (undefined)
    );
    /** @type {{messageId: string, content: string, revision: number, eventId: string}|null} */
    this._asked = null;
    this._isBusy = false;
  }

  /** @returns {HTMLTextAreaElement} */
  get _text() {
    return /** @type {HTMLTextAreaElement} */ (this.querySelector("textarea"));
  }

  render() {
    return html`<form
      class="editor"
      @submit=${(/** @type {SubmitEvent} */ event) => this._submit(event)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
    >
      <textarea
        class="field"
        dir="auto"
        rows="1"
        aria-label=${gettext("Text of your message")}
        maxlength="100000"
        data-testid="editor"
        @input=${() => this._written()}
      ></textarea>
      <div class="editor-foot">
        <span class="editor-keys">${gettext("Enter to save, Esc to cancel")}</span>
        ${
          mayAskEdited(this.entry)
            ? html`<button
                type="button"
                class="button"
                ?disabled=${this._isBusy}
                data-testid="save-and-ask"
                @click=${() => this._askAgain()}
              >
                ${gettext("Save and regenerate")}
              </button>`
            : nothing
        }
        <button type="button" class="button button-quiet" @click=${() => this._close()}>
          ${gettext("Cancel")}
        </button>
        <button
          type="submit"
          class="button button-primary"
          ?disabled=${this._isBusy}
          data-testid="save-edit"
        >
          ${gettext("Save")}
        </button>
      </div>
    </form>`;
  }

  firstUpdated() {
    const isBack = written.id === this.entry.id;
    if (!isBack) written = { id: this.entry.id, text: this.entry.content };
    this._text.value = written.text;
    this._grow();
    if (isBack) return;
    this._text.focus();
    this._text.setSelectionRange(this._text.value.length, this._text.value.length);
    this.scrollIntoView({ block: "nearest" });
  }

  updated() {
    if (
      this._asked &&
      this.entry.content === this._asked.content &&
      this.entry.revision > this._asked.revision
    ) {
      announce(gettext("Saved. Answers are being regenerated."));
      this._close();
    }
  }

  /** Save and ask again. A refusal is shown below the chat, and the text stays here. */
  _askAgain() {
    const content = this._text.value.trim();
    const { id: messageId, revision } = this.entry;
    if (content === this.entry.content || !content) {
      this._text.focus();
      return;
    }
    const request = { messageId, content, revision, eventId: newId() };
    const event = new CustomEvent("edit-and-ask", {
      bubbles: true,
      cancelable: true,
      detail: request,
    });
    if (this.dispatchEvent(event)) this._asked = request;
  }

  _written() {
    this._asked = null;
    written.text = this._text.value;
    this._grow();
  }

  _grow() {
    this._text.style.height = "auto";
    this._text.style.height = `${this._text.scrollHeight + 2}px`;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    // Keys belong to an input method while it composes; some browsers signal that only by 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this._close();
    } else if (event.key === "Enter" && !event.shiftKey && event.target === this._text) {
      event.preventDefault();
      /** @type {HTMLFormElement} */ (this.firstElementChild).requestSubmit();
    }
  }

  /** @param {SubmitEvent} event */
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
    const row = /** @type {HTMLElement|null} */ (this.closest("chat-message"));
    written = { id: "", text: "" };
    const page = pageAt(this);
    if (page.state.editing === this.entry.id) page.dispatch({ type: "editing", id: "" });
    row?.focus({ preventScroll: true });
  }
}
customElements.define("message-editor", MessageEditor);
