/** The card of one tool call: what runs, how far it is, what came of it. */

import { h, icon } from "./dom.js";
import { media } from "./media.js";

/** JSON for reading: a text as it is, anything else laid out. */
function pretty(json) {
  const value = parsed(json);
  if (value === undefined) return json;
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const STATES = { failed: "failed", stopped: "stopped", done: "done", asking: "asks first", running: "running…" };
const WORK_STATES = { ...STATES, asking: "working…", running: "working…" };

export class ToolView {
  constructor(part) {
    this._status = h("span", { class: "tool-status" });
    this._name = h("span", { class: "tool-name" });
    this._icon = icon("tool");
    this._arguments = h("pre", { tabindex: "0" });
    this._argumentsTitle = h("p", { class: "tool-label" }, "Arguments");
    this._result = h("pre", { tabindex: "0" });
    this._resultBox = h("div", {}, h("p", { class: "tool-label" }, "Result"), this._result);
    this._fill = h("div", { class: "progress-fill" });
    this._bar = h(
      "div", { class: "progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 },
      this._fill,
    );
    this._stage = h("div", { class: "tool-stage" });
    this._said = h("div", { class: "tool-said", dir: "auto", tabindex: "0", role: "group", hidden: true });
    this._progress = h("div", { class: "tool-progress" }, this._bar, this._stage);
    this._media = h("div", { class: "tool-media" });
    this._detail = h(
      "div", { class: "tool-detail" }, this._argumentsTitle, this._arguments, this._resultBox,
    );
    this.element = h(
      "div", { class: "tool", "data-testid": "tool" },
      h(
        "details", {},
        h("summary", {}, this._icon, this._name, this._status, icon("chevron")),
        this._detail,
      ),
      this._progress, this._said, this._media,
    );
    this.update(part, false);
  }

  update(part, live) {
    const state = part.isError ? "failed" : part.stopped ? "stopped" : part.done || !live ? "done" : part.asking ? "asking" : "running";
    this.element.dataset.state = state;
    // What was presented stands below, in the answer itself.
    this.element.hidden = part.name === "present" && state === "done";
    if (part.name === "delegate") this._showWork(part, state);
    else {
      this._name.textContent = part.name || "tool";
      this._status.textContent = STATES[state];
      this._arguments.textContent = pretty(part.arguments || "{}");
    }
    this._resultBox.hidden = part.result === null;
    this._result.textContent = part.result === null ? "" : pretty(part.result);
    this._showProgress(part.progress, state);
    if (this._media.childElementCount !== part.items.length) {
      this._media.replaceChildren(...part.items.map(media));
    }
  }

  /** Work of another agent: its name, its task, and its words while it works. */
  _showWork(part, state) {
    const order = parsed(part.arguments || "{}") || {};
    const agent = order.agent || "agent";
    if (this._icon.classList.contains("icon-tool")) {
      const spark = icon("spark");
      this._icon.replaceWith(spark);
      this._icon = spark;
      // What it made is part of its report; what of it people see, the answer says.
      this._detail.append(this._media);
    }
    this._name.textContent = agent;
    this._status.textContent = WORK_STATES[state];
    this._argumentsTitle.textContent = "Task";
    this._arguments.textContent = order.task || pretty(part.arguments || "{}");
    this._said.hidden = ["done", "failed", "stopped"].includes(state) || !part.said;
    this._said.setAttribute("aria-label", `What ${agent} says`);
    if (!this._said.hidden && this._said.textContent !== part.said) {
      const atEnd = this._said.scrollHeight - this._said.scrollTop - this._said.clientHeight < 24;
      this._said.textContent = part.said;
      if (atEnd) this._said.scrollTop = this._said.scrollHeight;
    }
  }

  _showProgress(progress, state) {
    // Work of another agent may have begun without progress yet.
    const isWork = this._icon.classList.contains("icon-spark");
    this._progress.hidden = state !== "running" || !(progress || isWork);
    if (this._progress.hidden) return;
    const { percent, step, total_steps: total, message, stage } = progress || {};
    const value = percent ?? (total ? (100 * (step || 0)) / total : null);
    this._bar.classList.toggle("is-unknown", value === null);
    this._bar.setAttribute("aria-label", `Progress of ${this._name.textContent}`);
    if (value === null) this._bar.removeAttribute("aria-valuenow");
    else {
      this._bar.setAttribute("aria-valuenow", String(Math.round(value)));
      this._fill.style.width = `${value}%`;
    }
    const count = total ? `Step ${step ?? 0} of ${total}` : "";
    const share = value === null ? "" : `${Math.round(value)} %`;
    this._stage.textContent = [share, count, message || stage || ""].filter(Boolean).join(" · ");
  }
}
