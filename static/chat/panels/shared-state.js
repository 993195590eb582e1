/** The shared state of the open chat's members and agents: lists, and values by name. */

import { page } from "../context.js";
import { Selected } from "../store/store.js";
import { View, glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** Keys under which an item of a list has its text, and keys that mark it as done. */
const WORDS = ["text", "title", "name", "label", "item", "task"];
const DONE = ["done", "completed", "checked"];

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {unknown} value */
const isPlain = (value) => typeof value !== "object" || value === null;

/** The text of a list item, and whether it is done, if it says so. @param {unknown} value */
function itemOf(value) {
  if (isPlain(value)) return { words: String(value), isDone: null };
  const words =
    isObject(value) && WORDS.map((name) => value[name]).find((word) => typeof word === "string");
  const done = isObject(value)
    ? DONE.map((name) => value[name]).find((one) => typeof one === "boolean")
    : undefined;
  return { words: words || JSON.stringify(value), isDone: done ?? null };
}

const listTemplate = (/** @type {unknown[]} */ values) =>
  html`<ul>
    ${values.map((value) => {
      const { words, isDone } = itemOf(value);
      const box =
        isDone === null
          ? ""
          : html`<span
              class="task-box ${isDone ? "is-done" : ""}"
              role="img"
              aria-label=${isDone ? gettext("Done") : gettext("Not done")}
            ></span>`;
      return html`<li class=${isDone === null ? "" : "task"} dir="auto">${box}${words}</li>`;
    })}
  </ul>`;

/** @param {unknown} value */
function valueTemplate(value) {
  if (Array.isArray(value))
    return value.length
      ? listTemplate(value)
      : html`<p class="state-empty">${gettext("Empty")}</p>`;
  return isPlain(value)
    ? html`<p dir="auto">${String(value)}</p>`
    : html`<pre tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
}

const countOf = (/** @type {[string, unknown]} */ [name, value]) => {
  if (Array.isArray(value)) return `${name}: ${value.length}`;
  return isPlain(value) ? `${name}: ${value}` : name;
};

class SharedStatePanel extends View {
  constructor() {
    super();
    this._state = new Selected(this, page, (state) => state.shared);
  }

  willUpdate() {
    this.hidden = !Object.keys(this._state.value.value).length;
    this.dataset.testid = "shared-state";
  }

  render() {
    const { value, by } = this._state.value;
    const entries = Object.entries(value);
    return html` <details class="shared-state">
      <summary>
        ${glyph("check")}<b>${gettext("Shared")}</b
        ><span class="state-counts" dir="auto">${entries.map(countOf).join(" · ")}</span>${
          by ? html`<small>${interpolate(gettext("by %(name)s"), { name: by })}</small>` : ""
        }${glyph("chevron")}
      </summary>
      <div class="state-values">
        ${entries.map(
          ([name, one]) =>
            html`<section>
              <h2 dir="auto">${name}</h2>
              ${valueTemplate(one)}
            </section>`,
        )}
      </div>
    </details>`;
  }
}
customElements.define("shared-state", SharedStatePanel);
