/** Text to HTML by the server (`POST /api/v1/render`): few at a time, none twice. */

const AT_ONCE = 3;
const KEPT = 200;

export class Renderer {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this._api = api;
    /** @type {Map<string, Promise<string>>} */
    this._known = new Map();
    this._running = 0;
    this._waiting = [];
  }

  /** @param {string} text @returns {Promise<string>} sanitised HTML; rejects with ApiError */
  render(text) {
    let html = this._known.get(text);
    if (!html) {
      html = this._request(text);
      this._known.set(text, html);
      // A failure is not kept: the next wish asks again.
      html.catch(() => this._known.delete(text));
      if (this._known.size > KEPT) this._known.delete(this._known.keys().next().value);
    }
    return html;
  }

  async _request(text) {
    if (this._running >= AT_ONCE) await new Promise((go) => this._waiting.push(go));
    this._running += 1;
    try {
      return (await this._api.post("/render", { text })).html;
    } finally {
      this._running -= 1;
      this._waiting.shift()?.();
    }
  }
}
