/** Choose people and agents from two lists, which one search by name narrows. */

import { api } from "../context.js";
import { avatar, h } from "../dom.js";
import { priceText } from "../price.js";
import { gettext } from "../words.js";

const SEARCH_AFTER_MS = 200;

export class PeoplePicker {
  /** @param {Set<string>} [taken] names that are in the chat already, as `kind:name` */
  constructor(taken = new Set()) {
    this._taken = taken;
    /** @type {Map<string, {kind: "user"|"agent", name: string}>} */
    this.chosen = new Map();
    this._search = h("input", { type: "search", class: "field", id: "picker-search", placeholder: gettext("Search by name"), autocomplete: "off" });
    this._search.addEventListener("input", () => {
      clearTimeout(this._timer);
      this._timer = setTimeout(() => {
        this._load();
        this._showAgents();
      }, SEARCH_AFTER_MS);
    });
    /** @type {{name: string, description?: string, pricing?: any}[]} */
    this._known = [];
    this._count = h("span", { class: "picker-count" });
    this._people = h("ul", { class: "picker-list", "aria-label": gettext("People") });
    this._agents = h("ul", { class: "picker-list", "aria-label": gettext("Agents") });
    this.element = h(
      "div", { class: "picker" },
      h("label", { for: "picker-search" }, gettext("Find people and agents")), this._search,
      h("h3", {}, gettext("People")), this._people,
      h("h3", {}, gettext("Agents"), this._count), this._agents,
    );
    this._load();
    this._loadAgents();
  }

  get _wanted() {
    return this._search.value.trim();
  }

  async _load() {
    const wanted = this._wanted;
    const found = await this._read(this._people, `/users?q=${encodeURIComponent(wanted)}`, () => this._load());
    // An answer that is late is not that of the words in the field now.
    if (found && wanted === this._wanted) this._fill(this._people, "user", found.map(({ username }) => ({ name: username })));
  }

  async _loadAgents() {
    const found = await this._read(this._agents, "/agents", () => this._loadAgents());
    if (!found) return;
    this._known = found.filter(({ name }) => !this._taken.has(`agent:${name}`));
    this._showAgents();
  }

  _showAgents() {
    const wanted = this._wanted.toLowerCase();
    const has = (text) => (text || "").toLowerCase().includes(wanted);
    const found = this._known.filter(({ name, description }) => has(name) || has(description));
    this._count.textContent = found.length === this._known.length ? String(found.length) : `${found.length} of ${this._known.length}`;
    this._fill(this._agents, "agent", found);
  }

  /** @returns {Promise<any[]|undefined>} undefined where the list says what failed */
  async _read(list, path, again) {
    try {
      const answer = await api.get(path);
      return answer.data || answer;
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      const button = h("button", { type: "button", class: "button", onclick: again }, gettext("Try again"));
      list.replaceChildren(h("li", { class: "picker-none" }, `${error.message} `, button));
    }
  }

  _fill(list, kind, found) {
    const shown = found.filter(({ name }) => !this._taken.has(`${kind}:${name}`));
    list.replaceChildren(...shown.map(({ name, description, pricing }) => this._option(kind, name, description, priceText(pricing))));
    if (shown.length === 0) list.replaceChildren(h("li", { class: "picker-none" }, gettext("No match.")));
  }

  _option(kind, name, description, price = "") {
    const key = `${kind}:${name}`;
    const box = h("input", { type: "checkbox", name: key });
    box.checked = this.chosen.has(key);
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.set(key, { kind, name });
      else this.chosen.delete(key);
    });
    return h(
      "li", {},
      h(
        "label", { class: "picker-option" }, avatar(name, kind),
        h("span", { class: "picker-text" }, h("b", {}, name), description && h("small", {}, description), price && h("small", { class: "price" }, price)), box,
      ),
    );
  }
}
