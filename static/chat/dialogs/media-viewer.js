/**
 * Shows one picture or file of the chat: pictures enlarged and in sequence, the pages of a PDF, the
 * beginning of texts and tables.
 */

import { PREVIEW_BYTES, tableOf } from "../parts/preview.js";
import { textOf } from "../parts/file-text.js";
import { View, glyph, spinner } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";
import "./pdf-pages.js";

/**
 * @typedef {{kind: "image"|"pdf"|"text"|"table", url: string, name: string, shown?: string}} Medium
 *   `shown` is the address of a picture's preview
 *
 * @typedef {object} Preview the loaded part of a file
 * @property {string} [problem] why it cannot be shown
 * @property {string} [note] any other remark
 * @property {string} [text]
 * @property {string[][]} [rows] of a table, the first with the names of its columns
 * @property {boolean} [isPart] whether there is more of it
 * @property {string} [encoding] in which it was read, where nothing in it says that
 */

const ZOOMS = [1, 1.5, 2, 3, 5];

class MediaViewer extends View {
  static properties = {
    _medium: { state: true },
    _pictures: { state: true },
    _at: { state: true },
    _step: { state: true },
    _preview: { state: true },
  };

  constructor() {
    super();
    /** @type {Medium|null} */
    this._medium = null;
    /** @type {Medium[]} the pictures of the chat */
    this._pictures = [];
    /** The index of the shown picture; -1 for none. */
    this._at = -1;
    /** The zoom, as an index into ZOOMS. */
    this._step = 0;
    /** @type {Preview|null} null until it is read */
    this._preview = null;
    /** @type {HTMLElement|null} gets the focus back when it closes */
    this._opener = null;
  }

  connectedCallback() {
    super.connectedCallback();
    addEventListener("view-media", (event) => {
      const { target, detail } = /** @type {CustomEvent<Medium>} */ (event);
      this.open(/** @type {HTMLElement} */ (target), detail);
    });
  }

  /** @param {HTMLElement} opener gets the focus back when it closes @param {Medium} medium */
  async open(opener, medium) {
    this._opener = opener;
    const links = /** @type {HTMLElement[]} */ (
      Array.from(document.querySelectorAll(".log a.media-image"))
    );
    this._pictures =
      medium.kind === "image"
        ? links.map((link) => ({
            kind: "image",
            url: link.getAttribute("href") ?? "",
            name: link.dataset.name ?? "",
            shown: link.dataset.shown,
          }))
        : [];
    this._at = links.indexOf(opener);
    this._show(medium);
    await this.updateComplete;
    this._dialog.showModal();
    this._place.focus();
  }

  /** @returns {HTMLDialogElement} */
  get _dialog() {
    return /** @type {HTMLDialogElement} */ (this.querySelector("dialog"));
  }

  /** @returns {HTMLElement} */
  get _place() {
    return /** @type {HTMLElement} */ (this.querySelector(".viewer-place"));
  }

  render() {
    const medium = this._medium;
    return html`<dialog
      class="dialog viewer"
      aria-labelledby="viewer-title"
      data-testid="viewer"
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
      @close=${() => this._closed()}
    >
      <header>
        <h2 id="viewer-title" dir="auto">${medium?.name}</h2>
        ${medium ? this._tools(medium) : nothing}
        <button
          type="button"
          class="icon-button"
          aria-label=${gettext("Close")}
          title=${gettext("Close")}
          @click=${() => this._dialog.close()}
        >
          ${glyph("close")}
        </button>
      </header>
      <div
        class="viewer-place ${medium ? `is-${medium.kind}` : ""}"
        tabindex="0"
        role="group"
        aria-labelledby="viewer-title"
      >
        ${medium ? this._content(medium) : nothing}
      </div>
    </dialog>`;
  }

  /** @param {Medium} medium */
  _tools({ kind, url, name }) {
    const isPicture = kind === "image";
    const isLarge = isPicture || kind === "pdf";
    const isMany = isPicture && this._pictures.length > 1 && this._at >= 0;
    const count = isMany
      ? interpolate(gettext("%(n)s of %(count)s"), {
          n: this._at + 1,
          count: this._pictures.length,
        })
      : "";
    return html`<span class="viewer-count" role="status">${count}</span>
      ${this._tool("back", gettext("Previous picture"), isMany, this._at <= 0, () =>
        this._go(-1),
      )}${this._tool(
        "next",
        gettext("Next picture"),
        isMany,
        this._at >= this._pictures.length - 1,
        () => this._go(1),
      )}
      ${this._tool("zoomOut", gettext("Zoom out"), isLarge, this._step === 0, () =>
        this._zoom(-1),
      )}${this._tool("zoomIn", gettext("Zoom in"), isLarge, this._step === ZOOMS.length - 1, () =>
        this._zoom(1),
      )}
      <a class="button" href=${url} download=${name}>${gettext("Download")}</a>`;
  }

  /**
   * @param {keyof typeof import("../dom.js").PATHS} sign
   * @param {string} label
   * @param {boolean} isShown
   * @param {boolean} isEnd
   * @param {() => void} act
   */
  _tool(sign, label, isShown, isEnd, act) {
    return html`<button
      type="button"
      class="icon-button"
      aria-label=${label}
      title=${label}
      ?hidden=${!isShown}
      ?disabled=${isEnd}
      @click=${act}
    >
      ${glyph(sign)}
    </button>`;
  }

  /** @param {Medium} medium */
  _content({ kind, url, name, shown = url }) {
    if (kind === "image") {
      return html`<img
        class=${this._step ? "is-large" : ""}
        src=${shown}
        alt=${name}
        .style=${this._step ? `width: ${100 * ZOOMS[this._step]}%` : ""}
        @click=${() => this._setZoom(this._step === 0 ? 2 : 0)}
      />`;
    }
    if (kind === "pdf")
      return html`<pdf-pages .src=${url} .width=${ZOOMS[this._step]}></pdf-pages>`;
    const preview = this._preview;
    if (!preview) return spinner(gettext("Loading"));
    if (preview.problem) return html`<p class="dialog-error" role="alert">${preview.problem}</p>`;
    if (preview.note) return html`<p>${preview.note}</p>`;
    return html`${
      preview.isPart
        ? html`<p class="viewer-note">
            ${gettext("This is the beginning of the file. Download it to read the rest.")}
          </p>`
        : nothing
    }${
      preview.encoding
        ? html`<p class="viewer-note" data-testid="encoding">
            ${interpolate(
              gettext("Read as %(encoding)s. If letters look wrong, save the file as UTF-8."),
              { encoding: preview.encoding },
            )}
          </p>`
        : nothing
    }${preview.rows ? table(preview.rows) : html`<pre dir="auto">${preview.text}</pre>`}`;
  }

  /** @param {Medium} medium */
  _show(medium) {
    this._medium = medium;
    this._step = 0;
    this._preview = null;
    if (medium.kind === "text" || medium.kind === "table") this._read(medium);
  }

  /** @param {Medium} medium */
  async _read(medium) {
    let preview;
    try {
      preview = await previewOf(medium);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      preview = { problem: gettext("Couldn't reach the server. Close this and try again.") };
    }
    if (this._medium === medium) this._preview = preview;
  }

  /** @param {number} step */
  _setZoom(step) {
    this._step = Math.max(0, Math.min(ZOOMS.length - 1, step));
  }

  /** @param {number} by */
  _zoom(by) {
    this._setZoom(this._step + by);
  }

  /** @param {number} by */
  async _go(by) {
    const at = this._at + by;
    if (!this._pictures[at]) return;
    this._at = at;
    this._show(this._pictures[at]);
    await this.updateComplete;
    // A newly disabled button loses the focus.
    const now = document.activeElement;
    if (this._dialog.contains(now) && !(now instanceof HTMLButtonElement && now.disabled)) return;
    this._place.focus();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (
      !["image", "pdf"].includes(this._medium?.kind ?? "") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    /** @type {Record<string, () => void>} */
    const keys = {
      "+": () => this._zoom(1),
      "=": () => this._zoom(1),
      "-": () => this._zoom(-1),
      0: () => this._setZoom(0),
    };
    const ahead = getComputedStyle(this).direction === "rtl" ? -1 : 1;
    if (this._medium?.kind === "image" && this._step === 0)
      Object.assign(keys, { ArrowLeft: () => this._go(-ahead), ArrowRight: () => this._go(ahead) });
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  _closed() {
    this._medium = null;
    this._opener?.focus();
  }
}
customElements.define("media-viewer", MediaViewer);

/** @param {string[][]} rows */
function table([head = [], ...body]) {
  return html`<table>
    <thead>
      <tr>
        ${head.map((cell) => html`<th scope="col" dir="auto">${cell}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${body.map(
        (row) =>
          html`<tr>
            ${row.map((cell) => html`<td dir="auto">${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/**
 * Read the beginning of a file; throws a TypeError if the server was not reached.
 * @param {Medium} medium
 * @returns {Promise<Preview>}
 */
async function previewOf({ url, kind }) {
  const response = await fetch(url, { headers: { Range: `bytes=0-${PREVIEW_BYTES - 1}` } });
  // The first byte of an empty file cannot be requested.
  if (response.status === 416) return { note: gettext("This file is empty.") };
  if (!response.ok) return { problem: gettext("This file can no longer be read.") };
  const { text, encoding } = textOf(await response.arrayBuffer());
  const isPart = response.status === 206;
  if (text.includes("\0"))
    return { note: gettext("This isn't a text file. Download it to open it.") };
  if (kind === "text") return { text, encoding, isPart };
  const { rows, isCut } = tableOf(text);
  return { rows, encoding, isPart: isPart || isCut };
}
