/**
 * Renders the parts of an answer: text, thoughts, tools, media; the same for live and stored ones.
 */

import { newToolPart } from "../../uamp/live-response.js";
import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { media } from "./media.js";
import "./text.js";
import "./tool-call.js";
import { gettext } from "../words.js";

/**
 * @typedef {import("./media.js").ContentItem & {text?: string, thinking?: string, tool_call?: {id:
 *   string, name: string, arguments: string}, tool_result?: {call_id: string, result: string,
 *   is_error?: boolean, content_items?: import("./media.js").ContentItem[], duration_ms?: number}}}
 *   Item
 */

/**
 * The parts of a stored message. Content items are in order (UAMP §6.13).
 * @param {{content: string, content_items: Item[]|null, status?: string}} message
 * @returns {import("../../uamp/live-response.js").Part[]}
 */
export function partsOf({ content, content_items: items, status = "completed" }) {
  /** @type {import("../../uamp/live-response.js").Part[]} */
  const parts = [];
  /** @type {Map<string, import("../../uamp/live-response.js").ToolPart>} */
  const tools = new Map();
  const texts = (items || []).filter((item) => item.type === "text").length;
  if (texts === 0 && content) parts.push({ kind: "text", text: content });
  for (const item of items || []) {
    if (item.type === "text") {
      parts.push({ kind: "text", text: (texts === 1 && content) || item.text || "" });
    } else if (item.type === "thinking")
      parts.push({ kind: "thinking", text: item.thinking ?? "" });
    else if (item.type === "tool_call" && item.tool_call) {
      const tool = newToolPart(item.tool_call.id, item.tool_call.name);
      Object.assign(tool, {
        arguments: item.tool_call.arguments,
        done: true,
        stopped: status !== "completed",
      });
      tools.set(tool.id, tool);
      parts.push(tool);
    } else if (item.type === "tool_result" && item.tool_result) {
      const result = item.tool_result;
      const tool = tools.get(result.call_id) || newToolPart(result.call_id);
      if (!tools.has(tool.id)) parts.push(tool);
      Object.assign(tool, {
        done: true,
        stopped: false,
        result: result.result,
        isError: Boolean(result.is_error),
        items: result.content_items || [],
        tookMs: result.duration_ms ?? null,
      });
    } else parts.push({ kind: "media", item });
  }
  return parts;
}

/** @param {{text: string}} part @param {boolean} isRunning */
const thinking = ({ text }, isRunning) =>
  html` <details class="thinking ${isRunning ? "is-running" : ""}">
    <summary>
      ${glyph("chevron")}<span>${isRunning ? gettext("Thinking…") : gettext("Thoughts")}</span>
    </summary>
    <div class="thinking-text" dir="auto">${text}</div>
  </details>`;

/**
 * Renders the parts one below the other. Only the last part of an answer still grows, except for
 * parallel tools.
 * @param {import("../../uamp/live-response.js").Part[]} parts
 * @param {{isLive?: boolean, isRunning?: boolean, most?: number, agent?: string}} [state] whether
 *   it is live, and still grows; how many characters of a text are shown at first; the name of the
 *   agent whose tools have a price
 */
export function partsTemplate(
  parts,
  { isLive = false, isRunning = false, most = Infinity, agent = "" } = {},
) {
  return parts.map((part, at) => {
    const grows = isRunning && at === parts.length - 1;
    if (part.kind === "text" && isLive)
      return html`<live-text .text=${part.text} .grows=${grows}></live-text>`;
    if (part.kind === "text")
      return html`<stored-text .text=${part.text} .most=${most}></stored-text>`;
    if (part.kind === "thinking") return thinking(part, grows);
    if (part.kind === "tool")
      return html`<tool-call .call=${part} .isRunning=${isRunning} .agent=${agent}></tool-call>`;
    return media(/** @type {Item} */ (part.item));
  });
}
