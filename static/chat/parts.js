/** The parts of an answer on the page: text, thoughts, tools, media. Same for live and stored ones. */

import { newToolPart } from "../uamp/live-response.js";
import { h, icon } from "./dom.js";
import { LiveText, StoredText } from "./text.js";

/** Where a medium of a content item is served (UAMP §8.4.1), or "" when it is not by us. */
function urlOf(item) {
  const medium = item[item.type];
  const url = typeof medium === "string" ? "" : medium?.url || "";
  return /^\/api\/content\/[0-9a-f-]{36}$/i.test(url) ? url : "";
}

/**
 * The parts of a stored message. With content items they stand in their order (UAMP §6.13).
 * @param {{content: string, content_items: object[]|null, html?: string}} message
 * @returns {import("../uamp/live-response.js").Part[]}
 */
export function partsOf({ content, content_items: items, html }) {
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
      Object.assign(tool, { arguments: item.tool_call.arguments, done: true });
      tools.set(tool.id, tool);
      parts.push(tool);
    } else if (item.type === "tool_result") {
      const result = item.tool_result;
      const tool = tools.get(result.call_id) || newToolPart(result.call_id);
      if (!tools.has(tool.id)) parts.push(tool);
      Object.assign(tool, {
        done: true, result: result.result, isError: Boolean(result.is_error),
        items: result.content_items || [],
      });
    } else parts.push({ kind: "media", item });
  }
  return parts;
}

/** A picture inline, anything else as a chip to download. */
export function media(item) {
  const url = urlOf(item);
  const name = item.filename || item.alt_text || item.description || `${item.type}`;
  if (item.type === "image" && url) {
    const image = h("img", { src: url, alt: item.alt_text || item.description || "", loading: "lazy" });
    return h("a", { class: "media-image", href: url, target: "_blank", "aria-label": `Open ${name}` }, image);
  }
  const kind = item.mime_type || item.format || item.type;
  const size = item.size_bytes ? ` · ${fileSize(item.size_bytes)}` : "";
  const text = h("span", { class: "file-text" }, h("span", { class: "file-name" }, name), h("small", {}, kind + size));
  return url
    ? h("a", { class: "file-chip", href: url, download: name }, icon("file"), text)
    : h("span", { class: "file-chip" }, icon("file"), text);
}

/** @param {number} bytes */
export function fileSize(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
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
    this._text = h("div", { class: "thinking-text" });
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

/** JSON for reading; what is not JSON stays as it is. */
function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch (error) {
    if (error instanceof SyntaxError) return json;
    throw error;
  }
}

class ToolView {
  constructor(part) {
    this._status = h("span", { class: "tool-status" });
    this._name = h("span", { class: "tool-name" });
    this._arguments = h("pre", { tabindex: "0" });
    this._result = h("pre", { tabindex: "0" });
    this._resultBox = h("div", {}, h("h4", {}, "Result"), this._result);
    this._fill = h("div", { class: "progress-fill" });
    this._bar = h(
      "div", { class: "progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 },
      this._fill,
    );
    this._stage = h("div", { class: "tool-stage" });
    this._progress = h("div", { class: "tool-progress" }, this._bar, this._stage);
    this._media = h("div", { class: "tool-media" });
    this.element = h(
      "div", { class: "tool" },
      h(
        "details", {},
        h("summary", {}, icon("tool"), this._name, this._status, icon("chevron")),
        h("div", { class: "tool-detail" }, h("h4", {}, "Arguments"), this._arguments, this._resultBox),
      ),
      this._progress, this._media,
    );
    this.update(part, false);
  }

  update(part, live) {
    const state = part.isError ? "failed" : part.done || !live ? "done" : "running";
    this.element.dataset.state = state;
    this._name.textContent = part.name || "tool";
    this._status.textContent = { failed: "failed", done: "done", running: "running…" }[state];
    this._arguments.textContent = pretty(part.arguments || "{}");
    this._resultBox.hidden = part.result === null;
    this._result.textContent = part.result === null ? "" : pretty(part.result);
    this._showProgress(part.progress, state);
    if (this._media.childElementCount !== part.items.length) {
      this._media.replaceChildren(...part.items.map(media));
    }
  }

  _showProgress(progress, state) {
    this._progress.hidden = state !== "running" || !progress;
    if (!progress) return;
    const { percent, step, total_steps: total } = progress;
    const value = percent ?? (total ? (100 * (step || 0)) / total : null);
    this._bar.classList.toggle("is-unknown", value === null);
    this._bar.setAttribute("aria-label", `Progress of ${this._name.textContent}`);
    if (value === null) this._bar.removeAttribute("aria-valuenow");
    else {
      this._bar.setAttribute("aria-valuenow", String(Math.round(value)));
      this._fill.style.width = `${value}%`;
    }
    const count = total ? `Step ${step ?? 0} of ${total}` : "";
    const said = progress.message || progress.stage || "";
    const share = value === null ? "" : `${Math.round(value)} %`;
    this._stage.textContent = [share, count, said].filter(Boolean).join(" · ");
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
