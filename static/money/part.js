/** What the parts of the money page share: the API, loading with an error to try again, changes. */

import { Api, isApiError } from "../chat/api.js";
import { sameAs } from "../chat/dom.js";
import { View } from "../chat/view.js";
import { gettext } from "../chat/words.js";
import { html, nothing } from "../vendor/lit/lit.js";

/** @type {{csrf_cookie: string}} */
const start = JSON.parse(document.getElementById("start")?.textContent ?? "");
export const api = new Api(start.csrf_cookie);

/** @typedef {import("../vendor/lit/lit.js").TemplateResult} TemplateResult */

/** One part of the page. It reads itself again after anything moved (`money-changed`). */
export class MoneyPart extends View {
  /** @type {import("../vendor/lit/lit.js").PropertyDeclarations} */
  static properties = {
    _error: { state: true },
    _canLoad: { state: true },
    _isBusy: { state: true },
  };

  constructor() {
    super();
    /** What could not be done, and why; "" after what could. */
    this._error = "";
    /** Whether it is the reading that failed. */
    this._canLoad = false;
    this._isBusy = false;
    this._onMoved = () => this.load();
  }

  connectedCallback() {
    super.connectedCallback();
    this.setAttribute("role", "region");
    this.setAttribute("aria-labelledby", `${this.localName}-title`);
    addEventListener("money-changed", this._onMoved);
    this.load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    removeEventListener("money-changed", this._onMoved);
  }

  /** What the part is called; a part says it. @returns {string} */
  get heading() {
    return "";
  }

  /** Read what is shown; a part says how. @returns {Promise<void>} */
  async read() {}

  /** What is below the heading; a part draws it. @returns {unknown} */
  body() {
    return nothing;
  }

  render() {
    return html`<h2 id="${this.localName}-title" tabindex="-1">${this.heading}</h2>
      <div class="part-body">${this.body()}</div>`;
  }

  /** What went wrong, where the part has it. */
  problem() {
    if (!this._error) return nothing;
    return html`<p class="part-error" role="alert">
      ${this._error}${
        this._canLoad
          ? html` <button type="button" class="link" @click=${() => this.load()}>
              ${gettext("Reload")}
            </button>`
          : nothing
      }
    </p>`;
  }

  /** Read and show. */
  async load() {
    const had = this.contains(document.activeElement) ? document.activeElement : null;
    this._canLoad = !(await this.attempt(() => this.read()));
    await this.updateComplete;
    // What had the focus may be gone: it must not fall to the top of the page.
    if (had && !had.isConnected)
      (sameAs(had, this) ?? /** @type {HTMLElement} */ (this.querySelector("h2"))).focus({
        preventScroll: true,
      });
  }

  /**
   * Do something, and show why it could not be done.
   * @param {() => Promise<void>} work
   * @returns {Promise<boolean>} whether it was done
   */
  async attempt(work) {
    this._error = "";
    this._canLoad = false;
    try {
      await work();
    } catch (problem) {
      if (!isApiError(problem)) throw problem;
      this._error = problem.message;
      return false;
    }
    return true;
  }

  /**
   * Do something once, with its button out of reach meanwhile. A disabled button loses the focus:
   * it gets it back.
   * @param {() => Promise<void>} work
   * @returns {Promise<boolean>} whether it was done
   */
  async once(work) {
    if (this._isBusy) return false;
    const had = document.activeElement;
    this._isBusy = true;
    const isDone = await this.attempt(work);
    this._isBusy = false;
    await this.updateComplete;
    if (
      had instanceof HTMLElement &&
      this.contains(had) &&
      document.activeElement === document.body
    )
      had.focus();
    return isDone;
  }

  /** Notify all parts that money moved. */
  changed() {
    dispatchEvent(new Event("money-changed"));
  }
}

/**
 * A table with a caption for screen readers.
 * @param {string} caption @param {string[]} heads "" for a column of buttons @param {unknown} rows
 */
export const table = (caption, heads, rows) =>
  html`<div class="table-scroll" tabindex="0" role="group" aria-label=${caption}>
    <table>
      <caption class="visually-hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${heads.map(
            (head) =>
              html`<th scope="col">
                ${head || html`<span class="visually-hidden">${gettext("Action")}</span>`}
              </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;

const ID_SHOWN = 12;

/**
 * A name, or the beginning of an id, which opens to the whole of it; as narrow as the table needs.
 * @param {string} name
 * @param {string} [id]
 */
export const named = (name, id = "") =>
  html`<span class="named"
    >${
      name ||
      html`<details>
        <summary title=${id}><code>${`${id.slice(0, ID_SHOWN)}…`}</code></summary>
        <code>${id}</code>
      </details>`
    }</span
  >`;

/** A field with its label. @param {string} label @param {unknown} field */
export const labelled = (label, field) =>
  html`<label class="labelled"><span>${label}</span>${field}</label>`;

/** What a person wrote into a field of a form. @param {FormData} form @param {string} name */
export const written = (form, name) => String(form.get(name) ?? "").trim();
