/** Looks at one picture or file of the chat: pictures larger and one after the other, texts and tables from their beginning. */

import { h, iconButton } from "../dom.js";
import { PREVIEW_BYTES, tableOf } from "../parts/preview.js";
import { gettext } from "../words.js";

/** @typedef {{kind: "image"|"text"|"table", url: string, name: string}} Medium */

const ZOOMS = [1, 1.5, 2, 3, 5];

class MediaViewer extends HTMLElement {
  connectedCallback() {
    this._title = h("h2", { id: "viewer-title", dir: "auto" });
    this._place = h("div", { class: "viewer-place", tabindex: "0", role: "group", "aria-labelledby": "viewer-title" });
    this._count = h("span", { class: "viewer-count", role: "status" });
    this._download = h("a", { class: "button", download: true }, gettext("Download"));
    this._out = iconButton("zoomOut", gettext("Smaller"), { onclick: () => this._zoom(-1) });
    this._in = iconButton("zoomIn", gettext("Larger"), { onclick: () => this._zoom(1) });
    this._before = iconButton("back", gettext("Previous picture"), { onclick: () => this._go(-1) });
    this._after = iconButton("next", gettext("Next picture"), { onclick: () => this._go(1) });
    this._dialog = h(
      "dialog", { class: "dialog viewer", "aria-labelledby": "viewer-title", "data-testid": "viewer" },
      h("header", {}, this._title, this._count, this._before, this._after, this._out, this._in, this._download,
        iconButton("close", gettext("Close"), { onclick: () => this._dialog.close() })),
      this._place,
    );
    this._dialog.addEventListener("keydown", (event) => this._key(event));
    this._dialog.addEventListener("close", () => this._closed());
    this.append(this._dialog);
    addEventListener("view-media", ({ target, detail }) => this.open(/** @type {any} */ (target), detail));
  }

  /** @param {HTMLElement} opener has the focus again when it closes @param {Medium} medium */
  open(opener, medium) {
    this._opener = opener;
    const links = Array.from(document.querySelectorAll(".log a.media-image"));
    this._pictures = medium.kind === "image" ? links.map((link) => ({ kind: "image", url: link.getAttribute("href"), name: link.dataset.name })) : [];
    this._at = links.indexOf(opener);
    this._show(medium);
    this._dialog.showModal();
    this._place.focus();
  }

  /** @param {Medium} medium */
  _show(medium) {
    const { kind, url, name } = medium;
    this._medium = medium;
    this._title.textContent = name;
    this._download.href = url;
    this._download.download = name;
    const isPicture = kind === "image";
    const many = isPicture && this._pictures.length > 1 && this._at >= 0;
    for (const button of [this._before, this._after]) button.hidden = !many;
    for (const button of [this._out, this._in]) button.hidden = !isPicture;
    this._count.textContent = many ? `${this._at + 1} of ${this._pictures.length}` : "";
    this._before.disabled = this._at <= 0;
    this._after.disabled = this._at >= this._pictures.length - 1;
    this._place.className = `viewer-place is-${kind}`;
    if (isPicture) this._picture(url, name);
    else this._text(medium);
  }

  _picture(url, name) {
    this._image = h("img", { src: url, alt: name });
    this._image.addEventListener("click", () => this._setZoom(this._step === 0 ? 2 : 0));
    this._place.replaceChildren(this._image);
    this._setZoom(0);
  }

  _setZoom(step) {
    this._step = Math.max(0, Math.min(ZOOMS.length - 1, step));
    this._image.style.width = this._step ? `${100 * ZOOMS[this._step]}%` : "";
    this._image.classList.toggle("is-large", this._step > 0);
    this._out.disabled = this._step === 0;
    this._in.disabled = this._step === ZOOMS.length - 1;
  }

  _zoom(by) {
    this._setZoom(this._step + by);
  }

  _go(by) {
    const at = this._at + by;
    if (!this._pictures[at]) return;
    this._at = at;
    this._show(this._pictures[at]);
    // A button that is disabled now loses the focus.
    if (this._dialog.contains(document.activeElement) && !document.activeElement.disabled) return;
    this._place.focus();
  }

  _key(event) {
    if (this._medium.kind !== "image" || event.ctrlKey || event.metaKey || event.altKey) return;
    const isLarge = this._step > 0;
    /** @type {Record<string, () => void>} */
    const keys = { "+": () => this._zoom(1), "=": () => this._zoom(1), "-": () => this._zoom(-1), 0: () => this._setZoom(0) };
    if (!isLarge) Object.assign(keys, { ArrowLeft: () => this._go(-1), ArrowRight: () => this._go(1) });
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** @param {Medium} medium */
  async _text(medium) {
    this._place.replaceChildren(h("div", { class: "spinner", role: "img", "aria-label": gettext("Loading") }));
    let shown;
    try {
      shown = await this._preview(medium);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      shown = [h("p", { class: "dialog-error", role: "alert" }, gettext("The server was not reached. Close this and try again."))];
    }
    if (this._medium === medium) this._place.replaceChildren(...shown);
  }

  /** @param {Medium} medium @returns {Promise<HTMLElement[]>} */
  async _preview({ url, kind }) {
    const response = await fetch(url, { headers: { Range: `bytes=0-${PREVIEW_BYTES - 1}` } });
    // An empty file has no first byte.
    if (response.status === 416) return [h("p", {}, gettext("This file is empty."))];
    if (!response.ok) return [h("p", { class: "dialog-error", role: "alert" }, gettext("This file cannot be read any more."))];
    const text = new TextDecoder().decode(await response.arrayBuffer());
    const isPart = response.status === 206;
    if (text.includes("\0")) return [h("p", {}, gettext("This file is no text. Download it to open it."))];
    if (kind === "text") return [this._note(isPart), h("pre", { dir: "auto" }, text)].filter(Boolean);
    const { rows, isCut } = tableOf(text);
    const [head = [], ...body] = rows;
    const cells = (row, tag, attributes = {}) => h("tr", {}, row.map((cell) => h(tag, { dir: "auto", ...attributes }, cell)));
    const table = h("table", {}, h("thead", {}, cells(head, "th", { scope: "col" })), h("tbody", {}, body.map((row) => cells(row, "td"))));
    return [this._note(isPart || isCut), table].filter(Boolean);
  }

  _note(isPart) {
    return isPart && h("p", { class: "viewer-note" }, gettext("This is the beginning of the file. Download it to read all of it."));
  }

  _closed() {
    this._place.replaceChildren();
    this._opener?.focus();
  }
}
customElements.define("media-viewer", MediaViewer);
