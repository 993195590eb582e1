/** A button that copies a text, and confirms so for a moment, to screen readers too. */

import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

const SAID_MS = 2_000;

class CopyButton extends View {
  static properties = {
    label: { attribute: false },
    text: { attribute: false },
    _isCopied: { state: true },
  };

  constructor() {
    super();
    this.label = "";
    this.text = "";
    this._isCopied = false;
    this._timer = 0;
  }

  render() {
    // Without access to the clipboard there is no button.
    if (!navigator.clipboard) return nothing;
    return html`<button
        type="button"
        class="button copy"
        data-testid="copy"
        @click=${() => this._copy()}
      >
        ${this._isCopied ? gettext("Copied") : this.label}
      </button>
      <span class="visually-hidden" role="status"
        >${this._isCopied ? gettext("Copied.") : ""}</span
      >`;
  }

  async _copy() {
    await navigator.clipboard.writeText(this.text);
    this._isCopied = true;
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._isCopied = false;
    }, SAID_MS);
  }
}
customElements.define("copy-button", CopyButton);
