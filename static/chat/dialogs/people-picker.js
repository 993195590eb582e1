/** Choose people (searched) and agents (listed). */

import { api } from "../context.js";
import { avatar, h } from "../dom.js";
import { priceText } from "../price.js";

const SEARCH_AFTER_MS = 200;

export class PeoplePicker {
  /** @param {Set<string>} [taken] names that are in the chat already, as `kind:name` */
  constructor(taken = new Set()) {
    this._taken = taken;
    /** @type {Map<string, {kind: "user"|"agent", name: string}>} */
    this.chosen = new Map();
    this._search = h("input", { type: "search", class: "field", id: "picker-search", placeholder: "Search by name", autocomplete: "off" });
    this._search.addEventListener("input", () => {
      clearTimeout(this._timer);
      this._timer = setTimeout(() => this._load(), SEARCH_AFTER_MS);
    });
    this._people = h("ul", { class: "picker-list", "aria-label": "People" });
    this._agents = h("ul", { class: "picker-list", "aria-label": "Agents" });
    this.element = h(
      "div", { class: "picker" },
      h("label", { for: "picker-search" }, "People"), this._search, this._people,
      h("h3", {}, "Agents"), this._agents,
    );
    this._load();
    this._loadAgents();
  }

  async _load() {
    const wanted = this._search.value.trim();
    await this._fill(this._people, "user", `/users?q=${encodeURIComponent(wanted)}`, (user) => ({ name: user.username }));
  }

  async _loadAgents() {
    await this._fill(this._agents, "agent", "/agents", (agent) => agent);
  }

  async _fill(list, kind, path, read) {
    try {
      const answer = await api.get(path);
      const found = (answer.data || answer).map(read).filter(({ name }) => !this._taken.has(`${kind}:${name}`));
      list.replaceChildren(...found.map(({ name, description, pricing }) => this._option(kind, name, description, priceText(pricing))));
      if (found.length === 0) list.replaceChildren(h("li", { class: "picker-none" }, "No match."));
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      const again = h("button", { type: "button", class: "button", onclick: () => this._fill(list, kind, path, read) }, "Try again");
      list.replaceChildren(h("li", { class: "picker-none" }, `${error.message} `, again));
    }
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
