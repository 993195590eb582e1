/** The card of one tool call: its name, progress and result. */

import { page, store } from "../context.js";
import { toolPriceText } from "../money/price.js";
import { shareOf } from "../store/agent-work.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { media } from "./media.js";
import { gettext, interpolate } from "../words.js";

const NEAR_END_PX = 24;

/** @typedef {import("../../uamp/live-response.js").ToolPart} ToolPart */
/** @typedef {keyof typeof STATES} State */
/** @typedef {{agent?: string, task?: string}} Order a task that an agent delegates to another */

/** Formats JSON for reading: a string as it is, anything else indented. @param {string} json */
function pretty(json) {
  const value = parsed(json);
  if (value === undefined) return json;
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** @param {string} json @returns {unknown} undefined for invalid JSON */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const STATES = {
  failed: gettext("failed"),
  stopped: gettext("stopped"),
  done: gettext("done"),
  asking: gettext("asks first"),
  running: gettext("running…"),
};
const WORK_STATES = { ...STATES, asking: gettext("working…"), running: gettext("working…") };

/**
 * The text of an error result: tools put it in one member of an object, or return it as a string.
 * @param {string|null} json
 */
function errorText(json) {
  const value = parsed(json || '""');
  if (typeof value !== "object" || value === null) return String(value ?? json);
  const { error, message, detail } =
    /** @type {{error?: {message?: unknown}, message?: unknown, detail?: unknown}} */ (value);
  const words = [error?.message, error, message, detail].find((one) => typeof one === "string");
  return words || "";
}

/** "0.4 s", "12 s" or "2 min 5 s". @param {number} ms */
function durationText(ms) {
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  return seconds < 60
    ? `${Math.round(seconds)} s`
    : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

class ToolCall extends View {
  static properties = {
    // A growing part is changed in place.
    call: { attribute: false, hasChanged: () => true },
    isRunning: { attribute: false },
    agent: { attribute: false },
  };

  constructor() {
    super();
    /** Set before it is rendered. @type {ToolPart} */
    this.call = /** @type {ToolPart} */ (/** @type {unknown} */ (undefined));
    this.isRunning = false;
    /** The name of the calling agent. */
    this.agent = "";
    /** @type {State} */
    this._state = "running";
    this._isWork = false;
    /** @type {Order} */
    this._order = {};
    this._name = "";
    this._atEnd = true;
  }

  willUpdate() {
    const part = this.call;
    this._state = part.isError
      ? "failed"
      : part.stopped
        ? "stopped"
        : part.done || !this.isRunning
          ? "done"
          : part.asking
            ? "asking"
            : "running";
    this._isWork = part.name === "delegate";
    const order = this._isWork ? parsed(part.arguments || "{}") : undefined;
    this._order = /** @type {Order} */ (order ?? {});
    this._name = this._isWork ? this._order.agent || "agent" : part.name || "tool";
    this.className = "tool";
    Object.assign(this.dataset, { testid: "tool", state: this._state });
    // Presented content is shown below, in the answer itself.
    this.hidden = part.name === "present" && this._state === "done";
    const said = this.querySelector(".tool-said");
    this._atEnd = !said || said.scrollHeight - said.scrollTop - said.clientHeight < NEAR_END_PX;
  }

  render() {
    const { call: part, _isWork: isWork, _state: state } = this;
    const items = html`<div class="tool-media">
      ${/** @type {import("./media.js").ContentItem[]} */ (part.items).map(media)}
    </div>`;
    const input = isWork
      ? this._order.task || pretty(part.arguments || "{}")
      : pretty(part.arguments || "{}");
    const isOver = ["done", "failed", "stopped"].includes(state);
    return html` <details>
        <summary>
          ${glyph(isWork ? "spark" : "tool")}<span class="tool-name">${this._name}</span
          ><span class="tool-status"
            >${[(isWork ? WORK_STATES : STATES)[state], ...this._facts(state)].join(" · ")}</span
          >${glyph("chevron")}
        </summary>
        <div class="tool-detail">
          <p class="tool-label">${isWork ? gettext("Task") : gettext("Arguments")}</p>
          <pre tabindex="0">${input}</pre>
          ${
            part.result === null
              ? ""
              : html`<div>
                  <p class="tool-label">${gettext("Result")}</p>
                  <pre tabindex="0">${pretty(part.result)}</pre>
                </div>`
          }
          ${isWork ? items : ""}
        </div>
      </details>
      ${
        state === "failed" && errorText(part.result)
          ? html`<p class="tool-error" dir="auto">${errorText(part.result)}</p>`
          : ""
      }
      ${state === "running" && (part.progress || isWork) ? this._progress(part.progress || {}) : ""}
      <div
        class="tool-said"
        dir="auto"
        tabindex="0"
        role="group"
        aria-label=${interpolate(gettext("What %(name)s says"), { name: this._name })}
        ?hidden=${!isWork || isOver || !part.said}
      >${part.said}</div>
      ${isWork ? "" : items}`;
  }

  /** The duration and the price of the call. @param {State} state */
  _facts(state) {
    const part = this.call;
    const agent = store
      .get(page.state.chatId)
      ?.participants.find(({ kind, name }) => kind === "agent" && name === this.agent);
    const price =
      state === "stopped" || state === "failed" ? "" : toolPriceText(agent?.pricing, part.name);
    return [part.tookMs === null ? "" : durationText(part.tookMs), price].filter(Boolean);
  }

  /** @param {NonNullable<ToolPart["progress"]>} progress */
  _progress(progress) {
    const { step, total_steps: total, message, stage } = progress;
    const value = shareOf(progress);
    const count = total
      ? interpolate(gettext("Step %(step)s of %(total)s"), { step: step ?? 0, total })
      : "";
    const share = value === null ? "" : `${Math.round(value)} %`;
    return html` <div class="tool-progress">
      <div
        class="progress ${value === null ? "is-unknown" : ""}"
        role="progressbar"
        aria-valuemin="0"
        aria-valuemax="100"
        aria-label=${interpolate(gettext("Progress of %(name)s"), { name: this._name })}
        aria-valuenow=${value === null ? nothing : Math.round(value)}
      >
        <div class="progress-fill"></div>
      </div>
      <div class="tool-stage">
        ${[share, count, message || stage || ""].filter(Boolean).join(" · ")}
      </div>
    </div>`;
  }

  updated() {
    // The page's security policy forbids style attributes in markup.
    const fill = /** @type {HTMLElement|null} */ (this.querySelector(".progress-fill"));
    const value = this.call.progress && shareOf(this.call.progress);
    if (fill) fill.style.width = value === null ? "" : `${value}%`;
    const output = /** @type {HTMLElement} */ (this.querySelector(".tool-said"));
    if (this._atEnd && !output.hidden) output.scrollTop = output.scrollHeight;
  }
}
customElements.define("tool-call", ToolCall);
