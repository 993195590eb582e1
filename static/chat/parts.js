/** The parts of an answer on the page: text, thoughts, tools, media. Same for live and stored ones. */

import { newToolPart } from "../uamp/live-response.js";
import { h, icon } from "./dom.js";
import { media } from "./media.js";
import { LiveText, StoredText } from "./text.js";
import { ToolView } from "./tool-view.js";

/**
 * The parts of a stored message. With content items they stand in their order (UAMP §6.13).
 * @param {{content: string, content_items: object[]|null, html?: string, status?: string}} message
 * @returns {import("../uamp/live-response.js").Part[]}
 */
export function partsOf({ content, content_items: items, html, status = "completed" }) {
  const parts = [];
  const tools = new Map();
  const texts = (items || []).filter((item) => item.type === "text").length;
  if (texts === 0 && content) parts.push({ kind: "text", text: content, html });
  for (const item of items || []) {
    if (item.type === "text") {
      // The server rendered the message as a whole: that fits where there is only one text.
      parts.push(texts === 1 ? { kind: "text", text: content || item.text, html } : { kind: "text", text: item.text });
    } else if (item.type === "thinking") parts.push({ kind: "thinking", text: item.thinking });
    else if (item.type === "tool_call") {
      const tool = newToolPart(item.tool_call.id, item.tool_call.name);
      Object.assign(tool, { arguments: item.tool_call.arguments, done: true, stopped: status !== "completed" });
      tools.set(tool.id, tool);
      parts.push(tool);
    } else if (item.type === "tool_result") {
      const result = item.tool_result;
      const tool = tools.get(result.call_id) || newToolPart(result.call_id);
      if (!tools.has(tool.id)) parts.push(tool);
      Object.assign(tool, {
        done: true, stopped: false, result: result.result, isError: Boolean(result.is_error),
        items: result.content_items || [],
      });
    } else parts.push({ kind: "media", item });
  }
  return parts;
}

class MediaView {
  constructor({ item }) {
    this.element = media(item);
  }

  update() {}
}

class ThinkingView {
  constructor(part, live) {
    this._label = h("span", {}, live ? "Thinking…" : "Thoughts");
    this._text = h("div", { class: "thinking-text", dir: "auto" });
    this.element = h(
      "details", { class: "thinking" },
      h("summary", {}, icon("chevron"), this._label), this._text,
    );
    this.update(part, live);
  }

  update(part, live) {
    if (this._text.textContent !== part.text) this._text.textContent = part.text;
    this._label.textContent = live ? "Thinking…" : "Thoughts";
    this.element.classList.toggle("is-running", live);
  }
}

/** The views of a list of parts, kept in step with it. */
export class PartList {
  /** @param {boolean} live whether the texts still grow */
  constructor(live) {
    this.element = h("div", { class: "parts" });
    this._live = live;
    this._views = [];
  }

  /** @param {import("../uamp/live-response.js").Part[]} parts @param {boolean} running */
  update(parts, running) {
    const from = parts.findIndex((part, i) => this._views[i]?.kind !== part.kind);
    const kept = from === -1 ? parts.length : from;
    for (const { view } of this._views.splice(kept)) view.element.remove();
    parts.forEach((part, i) => {
      if (!this._views[i]) {
        const view = this._make(part, running);
        this._views.push({ kind: part.kind, view });
        this.element.append(view.element);
      }
      // Only the last part of an answer still grows, except for tools that run side by side.
      const growing = running && (part.kind === "tool" || i === parts.length - 1);
      this._views[i].view.update(part, growing);
    });
  }

  _make(part, running) {
    if (part.kind === "text") return this._live ? new LiveText() : new StoredText(part);
    if (part.kind === "thinking") return new ThinkingView(part, running);
    return part.kind === "tool" ? new ToolView(part) : new MediaView(part);
  }
}
