/** What the parts of the money page share: the API, loading with an error to try again, changes. */

import { Api } from "../chat/api.js";
import { h, sameAs } from "../chat/dom.js";
import { gettext } from "../chat/words.js";

const start = JSON.parse(document.getElementById("start").textContent);
export const api = new Api(start.csrf_cookie);

/** One part of the page. It reads itself again after anything moved (`money-changed`). */
export class MoneyPart extends HTMLElement {
  /** @param {string} title of the part */
  build(title, ...children) {
    const id = `${this.localName}-title`;
    this.setAttribute("role", "region");
    this.setAttribute("aria-labelledby", id);
    this.body = h("div", { class: "part-body" }, children);
    this.error = h("p", { class: "part-error", role: "alert", hidden: true });
    this.heading = h("h2", { id, tabindex: "-1" }, title);
    this.replaceChildren(this.heading, this.body, this.error);
    addEventListener("money-changed", () => this.load());
    this.load();
  }

  /** Read and show; a part that reads says how. */
  async load() {
    const had = this.contains(document.activeElement) ? document.activeElement : null;
    const again = () => h("button", { type: "button", class: "link", onclick: () => this.load() }, gettext("Load again"));
    await this.attempt(() => this.read(), again);
    // What had the focus may have been made anew, or be gone: it must not fall to the top of the page.
    if (had && !had.isConnected) (sameAs(had, this) || this.heading).focus({ preventScroll: true });
  }

  /** Put new content in place of the old; a half-typed value stays, also one typed while it loaded. */
  show(...children) {
    const typed = Array.from(this.body.querySelectorAll("input[name]")).filter((field) => field.value !== field.defaultValue);
    this.body.replaceChildren(...children);
    for (const field of typed) {
      const now = this.body.querySelector(`input[name="${field.name}"]`);
      if (now) now.value = field.value;
    }
  }

  /**
   * Do something, and show why it could not be done.
   * @param {() => Promise<void>} work
   * @param {() => Node} [remedy] what is offered then
   * @returns {Promise<boolean>} whether it was done
   */
  async attempt(work, remedy) {
    this.error.hidden = true;
    try {
      await work();
    } catch (problem) {
      if (problem.name !== "ApiError") throw problem;
      this.error.hidden = false;
      this.error.replaceChildren(problem.message, ...(remedy ? [" ", remedy()] : []));
      return false;
    }
    return true;
  }

  /** Notify the other parts that money moved. */
  changed() {
    dispatchEvent(new Event("money-changed"));
  }
}

/** A table with a caption for screen readers. */
export function table(caption, heads, rows) {
  return h(
    "div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table", {}, h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head || h("span", { class: "visually-hidden" }, gettext("Action")))))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : h("td", {}, ...[cell].flat().filter(Boolean))))))),
    ),
  );
}

const ID_SHOWN = 12;

/** A name, or the beginning of an id, which opens to the whole of it; as narrow as the table needs. */
export const named = (name, id) =>
  h("span", { class: "named" }, name || h("details", {}, h("summary", { title: id }, h("code", {}, `${id.slice(0, ID_SHOWN)}…`)), h("code", {}, id)));

/** A field with its label. */
export const labelled = (label, field) => h("label", { class: "labelled" }, h("span", {}, label), field);
