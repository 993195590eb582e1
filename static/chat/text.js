/** Text of a message: as the server renders it, and while it is still being written. */

import { renderer } from "./context.js";
import { h } from "./dom.js";
import { codeBar, fragment } from "./markdown-html.js";

const RENDER_EVERY_MS = 300;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n`]*)(?:\n|$)/;

/** A stored text: plain until its HTML is here. */
export class StoredText {
  /** @param {{text: string, html?: string}} part */
  constructor({ text, html }) {
    this.element = h("div", { class: "markdown", dir: "auto", "data-testid": "message-body" });
    if (html === undefined) {
      this.element.classList.add("is-plain");
      this.element.textContent = text;
      this._render(text);
    } else this._show(html);
  }

  update() {}

  async _render(text) {
    try {
      this._show(await renderer.render(text));
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      // The words are on the page; they only lack their formatting.
    }
  }

  _show(html) {
    this.element.classList.remove("is-plain");
    this.element.replaceChildren(fragment(html));
  }
}

/**
 * Where the last finished block of a text ends: behind a blank line or before a fence, never inside
 * a fenced block.
 * @param {string} text @param {number} from start of a block
 */
export function finishedUntil(text, from) {
  let end = from;
  let fence = "";
  let at = from;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    if (newline === -1) break;
    const line = text.slice(at, newline);
    const mark = FENCE.exec(line)?.[1];
    if (fence) {
      if (mark?.startsWith(fence) && line.trim() === mark) {
        fence = "";
        end = newline + 1;
      }
    } else if (mark) {
      fence = mark;
      end = at;
    } else if (!line.trim()) end = newline + 1;
    at = newline + 1;
  }
  return end;
}

/** A text that grows: finished blocks as HTML, the rest as it comes. */
export class LiveText {
  constructor() {
    this._blocks = h("div", { class: "markdown" });
    this._tail = h("div", { class: "markdown tail", dir: "auto" });
    this.element = h("div", { class: "live-text", "data-testid": "message-body" }, this._blocks, this._tail);
    this._text = "";
    this._done = 0;
    this._timer = 0;
    this._busy = false;
  }

  update(part, growing) {
    if (!part.text.startsWith(this._text)) this._restart();
    const isNew = part.text !== this._text;
    this._text = part.text;
    this.element.classList.toggle("is-growing", growing);
    if (isNew) {
      this._showTail();
      this._schedule();
    }
  }

  _restart() {
    this._blocks.replaceChildren();
    this._done = 0;
  }

  _schedule() {
    if (this._timer || this._busy) return;
    this._timer = setTimeout(() => this._renderBlocks(), RENDER_EVERY_MS);
  }

  async _renderBlocks() {
    this._timer = 0;
    const from = this._done;
    const until = finishedUntil(this._text, from);
    const chunk = this._text.slice(from, until);
    if (!chunk.trim()) return;
    this._busy = true;
    try {
      const html = await renderer.render(chunk);
      // Unless the text was replaced meanwhile.
      if (this._done === from && this._text.startsWith(chunk, from)) {
        this._blocks.append(fragment(html));
        this._done = until;
        this._showTail();
      }
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      // It stays in the tail as plain text; the stored message comes with its HTML.
    } finally {
      this._busy = false;
    }
  }

  _showTail() {
    const tail = this._text.slice(this._done);
    const fence = FENCE.exec(tail);
    if (!fence) {
      if (this._code) this._code = null;
      this._tail.textContent = tail.trimStart();
      return;
    }
    if (!this._code) {
      const language = fence[2].trim().split(/\s/)[0];
      this._code = h("code");
      const box = h("div", { class: "code-block" }, h("pre", { tabindex: "0" }, this._code));
      box.prepend(codeBar(language, () => this._code?.textContent || ""));
      this._tail.replaceChildren(box);
    }
    this._code.textContent = tail.slice(fence[0].length);
  }
}
