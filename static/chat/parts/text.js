/** Text of a message: as the server renders it, and while it is still being written. */

import { renderer } from "../context.js";
import { View } from "../view.js";
import { finishedUntil, fenceOf } from "./blocks.js";
import { codeBar, fragment, prepared } from "./markdown-html.js";
import { h } from "../dom.js";
import { html } from "../../vendor/lit/lit.js";

/** The module that draws markdown here; it is loaded with the first answer that grows. */
let drawing = null;

async function loadDrawing() {
  drawing ||= await import("./live-markdown.js");
}

/** A stored text: plain until its HTML is here. */
class StoredText extends View {
  static properties = {
    text: { attribute: false },
    html: { attribute: false },
    _nodes: { state: true },
  };

  constructor() {
    super();
    this._nodes = null;
  }

  willUpdate(changed) {
    if (changed.has("html") || changed.has("text")) {
      if (this.html === undefined) this._ask(this.text);
      else this._nodes = Array.from(fragment(this.html).childNodes);
    }
    this.className = this._nodes ? "markdown" : "markdown is-plain";
    this.dir = "auto";
    this.dataset.testid = "message-body";
  }

  render() {
    return html`${this._nodes || this.text}`;
  }

  async _ask(text) {
    try {
      const made = await renderer.render(text);
      if (this.text === text) this._nodes = Array.from(fragment(made).childNodes);
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      // The words are on the page; they only lack their formatting.
    }
  }
}
customElements.define("stored-text", StoredText);

/**
 * A text that grows: each finished block is drawn once, the last block with each change. Lit sees only
 * the two boxes: what is in them is appended, so that what one selects or copies stays.
 */
class LiveText extends View {
  static properties = {
    text: { attribute: false },
    grows: { attribute: false },
  };

  constructor() {
    super();
    this.text = "";
    this._shown = "";
    this._done = 0;
    loadDrawing().then(() => this.requestUpdate());
  }

  willUpdate() {
    this.className = `live-text ${this.grows ? "is-growing" : ""}`;
    this.dataset.testid = "message-body";
  }

  render() {
    return html`<div class="markdown"></div><div class="markdown tail ${drawing ? "" : "is-plain"}" dir="auto"></div>`;
  }

  updated() {
    const [blocks, tail] = this.children;
    if (!this.text.startsWith(this._shown)) {
      blocks.replaceChildren();
      this._done = 0;
    }
    this._shown = this.text;
    if (!drawing) {
      tail.textContent = this.text.trimStart();
      return;
    }
    const until = finishedUntil(this.text, this._done);
    if (until > this._done) {
      blocks.append(prepared(drawing.drawn(this.text.slice(this._done, until))));
      this._done = until;
    }
    this._showTail(tail, this.text.slice(this._done));
  }

  _showTail(place, tail) {
    const fence = fenceOf(tail);
    if (!fence) {
      this._code = null;
      place.replaceChildren(prepared(drawing.drawnTail(tail)));
      return;
    }
    if (!this._code) {
      this._code = h("code");
      const box = h("div", { class: "code-block" }, h("pre", { tabindex: "0" }, this._code));
      box.prepend(codeBar(fence.language, () => this._code?.textContent || ""));
      place.replaceChildren(box);
    }
    this._code.textContent = tail.slice(fence.length);
  }
}
customElements.define("live-text", LiveText);
