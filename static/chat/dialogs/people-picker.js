/** Chooses people and agents from two lists, both narrowed by one search. */

import { isApiError } from "../api.js";
import { api, start } from "../context.js";
import { folded } from "../text/folding.js";
import { priceText } from "../money/price.js";
import { View, face } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

const SEARCH_AFTER_MS = 200;

/**
 * @typedef {object} Choice
 * @property {"user"|"agent"} kind
 * @property {string} name
 * @property {string} [description]
 * @property {import("../money/price.js").Pricing|null} [pricing]
 *
 * @typedef {object} Found the choices of a list, or why they could not be loaded
 * @property {Choice[]} choices
 * @property {string} error
 */

/** @type {Found} */
const NONE = { choices: [], error: "" };

export class PeoplePicker extends View {
  static properties = {
    taken: { attribute: false },
    _people: { state: true },
    _agents: { state: true },
    _wanted: { state: true },
  };

  constructor() {
    super();
    /** @type {Set<string>} members of the chat, as `kind:name` */
    this.taken = new Set();
    /** @type {Map<string, Choice>} */
    this._chosen = new Map();
    /** @type {Found|null} null until loaded */
    this._people = null;
    /** @type {Found|null} */
    this._agents = null;
    this._wanted = "";
    this._timer = 0;
  }

  connectedCallback() {
    super.connectedCallback();
    this._readPeople();
    this._readAgents();
  }

  /** @param {"user"|"agent"} kind @returns {string[]} the chosen names */
  chosen(kind) {
    return Array.from(this._chosen.values())
      .filter((one) => one.kind === kind)
      .map(({ name }) => name);
  }

  /** @returns {HTMLInputElement} */
  get _search() {
    return /** @type {HTMLInputElement} */ (this.querySelector("input[type=search]"));
  }

  render() {
    const known = this._free(this._agents ?? NONE);
    const wanted = folded(this._wanted);
    const has = (/** @type {string|undefined} */ text) => folded(text || "").includes(wanted);
    const people = this._withAddress(this._free(this._people ?? NONE));
    const agents = known.filter(({ name, description }) => has(name) || has(description));
    const count =
      agents.length === known.length
        ? String(known.length)
        : interpolate(gettext("%(n)s of %(count)s"), { n: agents.length, count: known.length });
    return html`<div class="picker">
      <label for="picker-search">${gettext("Find people and agents")}</label>
      <input
        type="search"
        class="field"
        id="picker-search"
        placeholder=${gettext("Search by name")}
        autocomplete="off"
        @input=${() => this._written()}
      />
      <h3>${gettext("People")}</h3>
      ${this._list(gettext("People"), this._people, people, () => this._readPeople())}
      <h3
        aria-label=${
          this._agents ? interpolate(gettext("Agents, %(count)s"), { count }) : gettext("Agents")
        }
      >
        ${gettext("Agents")}<span class="picker-count">${this._agents ? count : ""}</span>
      </h3>
      ${this._list(gettext("Agents"), this._agents, agents, () => this._readAgents())}
      <a class="button button-quiet" href="/account/agents">${gettext("Connect your own agent")}</a>
    </div>`;
  }

  /**
   * @param {string} label
   * @param {Found|null} found
   * @param {Choice[]} shown
   * @param {() => void} again
   */
  _list(label, found, shown, again) {
    return html`<ul class="picker-list" aria-label=${label}>
      ${
        found?.error
          ? html`<li class="picker-none">
              ${found.error}
              <button type="button" class="button" @click=${again}>${gettext("Try again")}</button>
            </li>`
          : found && !shown.length
            ? html`<li class="picker-none">${gettext("No matches.")}</li>`
            : repeat(shown, keyOf, (choice) => this._option(choice))
      }
    </ul>`;
  }

  /** @param {Choice} choice */
  _option(choice) {
    const { kind, name, description, pricing } = choice;
    const key = keyOf(choice);
    const price = priceText(pricing);
    return html`<li>
      <label class="picker-option"
        >${face(name, kind)}<span class="picker-text"
          ><b>${name}</b>${description ? html`<small>${description}</small>` : nothing}${
            price ? html`<small class="price">${price}</small>` : nothing
          }</span
        ><input
          type="checkbox"
          name=${key}
          .checked=${this._chosen.has(key)}
          @change=${(/** @type {Event} */ event) =>
            this._choose(choice, /** @type {HTMLInputElement} */ (event.target).checked)}
      /></label>
    </li>`;
  }

  /**
   * A complete address in the field is a person on another server.
   * @param {Choice[]} people
   * @returns {Choice[]}
   */
  _withAddress(people) {
    const isAddress =
      /^[^\s@]+@[^\s@]+$/.test(this._wanted) && !people.some(({ name }) => name === this._wanted);
    return isAddress
      ? [
          ...people,
          {
            kind: "user",
            name: this._wanted,
            description: gettext("On another server: will be invited"),
          },
        ]
      : people;
  }

  /** @param {Found} found @returns {Choice[]} choices not in the chat yet */
  _free({ choices }) {
    return choices.filter((choice) => !this.taken.has(keyOf(choice)));
  }

  /** @param {Choice} choice @param {boolean} isChosen */
  _choose(choice, isChosen) {
    if (isChosen) this._chosen.set(keyOf(choice), choice);
    else this._chosen.delete(keyOf(choice));
  }

  _written() {
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._wanted = this._search.value.trim();
      this._readPeople();
    }, SEARCH_AFTER_MS);
  }

  async _readPeople() {
    const query = this._wanted;
    const people = await read(
      `/users?q=${encodeURIComponent(query)}`,
      (/** @type {{username: string}} */ { username }) => ({ kind: "user", name: username }),
    );
    // Ignore late answers to earlier searches.
    if (query === this._wanted) this._people = people;
  }

  async _readAgents() {
    this._agents = await read("/agents", (/** @type {Omit<Choice, "kind">} */ agent) => ({
      ...agent,
      kind: "agent",
      description: start.agent_descriptions[agent.description ?? ""] ?? agent.description,
    }));
  }
}
customElements.define("people-picker", PeoplePicker);

/** @param {Choice} choice */
const keyOf = ({ kind, name }) => `${kind}:${name}`;

/**
 * @template T
 * @param {string} path @param {(row: T) => Choice} choiceOf
 * @returns {Promise<Found>}
 */
async function read(path, choiceOf) {
  try {
    const { data } = await api.get(path);
    return { choices: data.map(choiceOf), error: "" };
  } catch (error) {
    if (!isApiError(error)) throw error;
    return { choices: [], error: error.message };
  }
}
