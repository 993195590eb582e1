/** The base of the money page's parts: API access, loading with a retry after errors, changes. */

import { Api, isApiError } from "../chat/api.js";
import { sameAs } from "../chat/dom.js";
import { View } from "../chat/view.js";
import { gettext } from "../chat/words.js";
import { html, nothing } from "../vendor/lit/lit.js";

/** @type {{csrf_cookie: string}} */
const start = JSON.parse(document.getElementById("start")?.textContent ?? "");
export const api = new Api(start.csrf_cookie);

/** @typedef {import("../vendor/lit/lit.js").TemplateResult} TemplateResult */

/** One part of the page. It reloads when money moved (`money-changed`). */
export class MoneyPart extends View {
  /** @type {import("../vendor/lit/lit.js").PropertyDeclarations} */
  static properties = {
    _error: { state: true },
    _canLoad: { state: true },
    _isBusy: { state: true },
  };

  constructor() {
    super();
    /** The error of the last action; "" after a success. */
    this._error = "";
    /** Whether loading failed, and can be retried. */
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

  /** The heading; overridden by each part. @returns {string} */
  get heading() {
    return "";
  }

  /** Load the data; overridden by each part. @returns {Promise<void>} */
  async read() {}

  /** The content below the heading; overridden by each part. @returns {unknown} */
  body() {
    return nothing;
  }

  render() {
    return html`<h2 id="${this.localName}-title" tabindex="-1">${this.heading}</h2>
      <div class="part-body">${this.body()}</div>`;
  }

  /** Render the error, if there is one. */
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

  /** Load and show the data. */
  async load() {
    const had = this.contains(document.activeElement) ? document.activeElement : null;
    this._canLoad = !(await this.attempt(() => this.read()));
    await this.updateComplete;
    // The focused element may be gone: the focus must not fall to the top of the page.
    if (had && !had.isConnected)
      (sameAs(had, this) ?? /** @type {HTMLElement} */ (this.querySelector("h2"))).focus({
        preventScroll: true,
      });
  }

  /**
   * Do something, and show any error.
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
   * Do something once, with its button disabled meanwhile. A disabled button loses the focus, which
   * is restored here.
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
 * A name, or the beginning of an id, which expands to the whole id; as narrow as the table needs.
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

/** The trimmed value of a form field. @param {FormData} form @param {string} name */
export const written = (form, name) => String(form.get(name) ?? "").trim();
