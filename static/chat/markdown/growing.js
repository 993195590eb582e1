/**
 * A growing text: each finished block is rendered once, and only the last one with each change.
 * Unchanged nodes stay on the page, so that nothing jumps, and selections survive.
 */

import { finish, prepared, sanitised } from "./drawing.js";
import { morph } from "./morph.js";
import { grown } from "./tail.js";

/** @param {import("./parser.js").Block[]} blocks */
const htmlOf = (blocks) => blocks.map(({ html }) => html).join("");

export class GrowingText {
  /** @param {HTMLElement} box an empty element */
  constructor(box) {
    this._box = box;
    this._text = "";
    /** Where the last block begins: in the text, and among the nodes. */
    this._from = 0;
    this._count = 0;
    /** The link definitions so far. @type {{references?: object}} */
    this._env = {};
  }

  _forget() {
    this._text = "";
    this._from = 0;
    this._count = 0;
    this._env = {};
  }

  /** @param {string} written the whole text so far @param {boolean} grows */
  show(written, grows) {
    const text = written.replace(/\r\n?/g, "\n");
    if (!text.startsWith(this._text)) this._forget();
    this._text = text;
    const { finished, length, last } = grown(text.slice(this._from), grows, this._env);
    const nodes = prepared(sanitised(htmlOf(finished)));
    const count = nodes.childNodes.length;
    nodes.append(prepared(sanitised(htmlOf(last).trimEnd())));
    morph(this._box, nodes, this._count);
    const settled = Array.from(this._box.childNodes).slice(
      this._count,
      grows ? this._count + count : undefined,
    );
    for (const node of settled) if (node instanceof Element) finish(node);
    this._from += length;
    this._count += count;
  }

  /** Show the text after the finished blocks unformatted. @param {string} written */
  rest(written) {
    const text = written.replace(/\r\n?/g, "\n");
    const paragraph = document.createElement("p");
    paragraph.className = "is-plain";
    paragraph.textContent = text.slice(this._from);
    const content = document.createDocumentFragment();
    content.append(paragraph);
    morph(this._box, content, this._count);
  }
}
