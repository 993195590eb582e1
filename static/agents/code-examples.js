/**
 * Examples of one protocol in several languages. Without scripts they are shown one below the
 * other.
 */

import "../chat/controls/copy-button.js";
import "../chat/controls/tabs.js";
import { gettext } from "../chat/words.js";
import { html, render } from "../vendor/lit/lit.js";

/** The last chosen language applies to all protocols that have it. */
const chosen = new EventTarget();

let made = 0;

class CodeExamples extends HTMLElement {
  connectedCallback() {
    if (this._list) return;
    made += 1;
    this._figures = Array.from(this.querySelectorAll("figure"));
    this._list = document.createElement("div");
    this._figures.forEach((figure, at) => this._prepare(figure, `examples-${made}-${at}`));
    chosen.addEventListener("language", (event) =>
      this._show(/** @type {CustomEvent<string>} */ (event).detail),
    );
    this.prepend(this._list);
    this._show(this._figures[0]?.dataset.language ?? "");
  }

  /**
   * Turn a figure rendered by the server into a panel.
   * @param {HTMLElement} figure @param {string} id
   */
  _prepare(figure, id) {
    figure.id = id;
    figure.setAttribute("role", "tabpanel");
    figure.setAttribute("aria-labelledby", `tab-${id}`);
    const caption = figure.querySelector("figcaption");
    if (caption) caption.className = "visually-hidden";
    const place = document.createElement("div");
    figure.append(place);
    render(
      html`<copy-button
        .label=${gettext("Copy")}
        .text=${figure.querySelector("pre")?.textContent ?? ""}
      ></copy-button>`,
      place,
    );
  }

  /** @param {string} language */
  _show(language) {
    const figures = this._figures ?? [];
    if (!this._list || !figures.some(({ dataset }) => dataset.language === language)) return;
    for (const figure of figures) figure.hidden = figure.dataset.language !== language;
    const tabs = figures.map(({ dataset, id }) => ({ name: dataset.language ?? "", panel: id }));
    const choose = (/** @type {CustomEvent<string>} */ { detail }) =>
      chosen.dispatchEvent(new CustomEvent("language", { detail }));
    render(
      html`<tab-list
        .label=${gettext("Language")}
        .tabs=${tabs}
        .chosen=${language}
        @choose-tab=${choose}
      ></tab-list>`,
      this._list,
    );
  }
}
customElements.define("code-examples", CodeExamples);
