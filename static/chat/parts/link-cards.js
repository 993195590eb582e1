/**
 * Previews of the pages that a message links to. The server reads them; this page requests none of
 * them itself.
 */

import { isApiError } from "../api.js";
import { api } from "../context.js";
import { View } from "../view.js";
import { html, repeat } from "../../vendor/lit/lit.js";

/** Delays before asking again for pages that a worker is still reading. */
const AGAIN_MS = [1_500, 4_000, 10_000, 20_000, 40_000];
const KEPT = 500;

/** @typedef {{url: string, title: string, description: string, site: string}} Card */
/** Loaded cards, by message and revision. @type {Map<string, Card[]>} */
const known = new Map();

/** @param {string} url */
const hostOf = (url) => new URL(url).host;

class LinkCards extends View {
  static properties = {
    messageId: { attribute: false },
    revision: { attribute: false },
    _cards: { state: true },
  };

  constructor() {
    super();
    this.messageId = "";
    this.revision = 0;
    /** @type {Card[]} */
    this._cards = [];
    this._timer = 0;
    /** @type {IntersectionObserver|null} */
    this._seen = null;
  }

  get _key() {
    return `${this.messageId} ${this.revision}`;
  }

  connectedCallback() {
    super.connectedCallback();
    // The message list may move the element, which disconnects it.
    if (this.hasUpdated) this._look();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._seen?.disconnect();
    clearTimeout(this._timer);
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("messageId") || changed.has("revision")) this._look();
  }

  _look() {
    this._seen?.disconnect();
    clearTimeout(this._timer);
    this._cards = known.get(this._key) ?? [];
    if (known.has(this._key)) return;
    // Load only cards that come into view.
    this._seen = new IntersectionObserver(([entry]) => entry.isIntersecting && this._ask(0));
    this._seen.observe(this.closest(".message") ?? this);
  }

  /** @param {number} attempt */
  async _ask(attempt) {
    this._seen?.disconnect();
    const key = this._key;
    let answer;
    try {
      answer = await api.post(`/messages/${encodeURIComponent(this.messageId)}/link-cards`);
    } catch (error) {
      // A message is complete without cards: report nothing.
      if (isApiError(error)) return;
      throw error;
    }
    if (key !== this._key || !this.isConnected) return;
    this._cards = answer.cards;
    if (!answer.pending) remember(key, answer.cards);
    else if (attempt < AGAIN_MS.length)
      this._timer = window.setTimeout(() => this._ask(attempt + 1), AGAIN_MS[attempt]);
  }

  render() {
    return repeat(
      this._cards,
      ({ url }) => url,
      ({ url, title, description, site }) =>
        html`<a
          class="link-card"
          data-testid="link-card"
          href=${url}
          target="_blank"
          rel="noopener nofollow noreferrer"
          dir="auto"
        >
          <small>${site ? `${site} · ` : ""}${hostOf(url)}</small
          ><b>${title}</b>${description ? html`<span>${description}</span>` : ""}</a
        >`,
    );
  }
}
customElements.define("link-cards", LinkCards);

/** @param {string} key @param {Card[]} cards */
function remember(key, cards) {
  known.set(key, cards);
  if (known.size > KEPT) known.delete(/** @type {string} */ (known.keys().next().value));
}
