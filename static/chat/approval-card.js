/** A tool call that waits for a person: the agent that asks, what for, and the two answers. */

import { me } from "./context.js";
import { h, icon } from "./dom.js";
import { media } from "./media.js";
import { clockTime, dayName, daysAgo } from "./time.js";

const VALUE_CHARS = 600;

/** One argument to read; a picture or file of the chat is shown instead of its id. */
function row(name, value, itemOf) {
  const item = typeof value === "string" && itemOf(value);
  if (item) return [h("dt", {}, item.type === "image" ? "picture" : "file"), h("dd", { class: "approval-media" }, media(item))];
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return [h("dt", {}, name), h("dd", { dir: "auto" }, text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}…` : text)];
}

/** The arguments as names and values that can be read. */
function readable(json, itemOf) {
  let given;
  try {
    given = JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return h("pre", { tabindex: "0" }, json);
  }
  if (given === null || typeof given !== "object" || Array.isArray(given)) given = { value: given };
  const rows = Object.entries(given).flatMap(([name, value]) => row(name, value, itemOf));
  return rows.length ? h("dl", { class: "approval-arguments", tabindex: "0" }, rows) : h("p", {}, "It takes no arguments.");
}

const whenOf = (ms) => `${daysAgo(ms) === 0 ? "" : `${dayName(ms)}, `}${clockTime(ms)}`;

/** What became of the question, in words. */
function outcomeText({ name, agent, outcome }) {
  if (!outcome || (!outcome.approved && !outcome.userId)) {
    return `${agent} does not ask for ${name} any more: it was decided, the time is over, or the answer was stopped.`;
  }
  const who = outcome.userId === me.id ? "You" : outcome.username || "The visitor";
  return `${who} ${outcome.approved ? "allowed" : "did not allow"} ${name}.`;
}

/** Fires (bubbling) `decide` with `{approval, approved, reason}`. */
class ApprovalCard extends HTMLElement {
  /**
   * @param {import("../uamp/approvals.js").Approval} approval
   * @param {boolean} mayDecide
   * @param {(id: string) => object|undefined} itemOf the content item of the chat with a content id
   */
  show(approval, mayDecide, itemOf) {
    this.dataset.testid = "approval";
    if (this.dataset.state === approval.state) return;
    this.dataset.state = approval.state;
    if (approval.state === "closed") this._showOutcome(approval);
    else if (!this._form) this._build(approval, mayDecide, itemOf);
    this._setBusy(approval.state === "sent");
  }

  _build(approval, mayDecide, itemOf) {
    const { agent, name, expiresAt } = approval;
    const titleId = `approval-${approval.callId}`;
    this.className = "approval";
    this.tabIndex = -1;
    this.setAttribute("role", "group");
    this.setAttribute("aria-labelledby", titleId);
    this._reason = h("input", {
      class: "field", type: "text", maxlength: 1000, "aria-label": `Reason for refusing ${name}, if you like`,
      placeholder: "Reason, if you refuse", "data-testid": "approval-reason",
    });
    const decide = (approved) =>
      this.dispatchEvent(new CustomEvent("decide", {
        bubbles: true, detail: { approval, approved, reason: approved ? "" : this._reason.value.trim() },
      }));
    this._allow = h(
      "button", { type: "button", class: "button button-primary", "data-testid": "allow", onclick: () => decide(true) }, "Allow",
    );
    this._refuse = h("button", { type: "submit", class: "button", "data-testid": "refuse" }, "Refuse");
    this._form = h(
      "form",
      {
        class: "approval-form",
        onsubmit: (event) => {
          event.preventDefault();
          decide(false);
        },
      },
      this._allow, this._refuse, this._reason,
    );
    const until = expiresAt ? ` until ${whenOf(1000 * expiresAt)}` : "";
    this.replaceChildren(
      h(
        "p", { class: "approval-title", id: titleId }, icon("alert"),
        h("span", {}, h("strong", {}, agent), " asks to use ", h("code", {}, name)),
      ),
      readable(approval.arguments, itemOf),
      mayDecide ? this._form : h("p", { class: "approval-note" }, "The person who asked for this, or an owner of the chat, has to allow it."),
      h("p", { class: "approval-note" }, `The answer waits${until}.`),
    );
  }

  _setBusy(isBusy) {
    // A disabled button loses the focus: it must not fall back to the top of the page.
    if (isBusy && this.contains(document.activeElement)) this.focus({ preventScroll: true });
    for (const part of [this._allow, this._refuse, this._reason]) if (part) part.disabled = isBusy;
  }

  _showOutcome(approval) {
    const hadFocus = this.contains(document.activeElement);
    this.className = "approval is-closed";
    this.removeAttribute("tabindex");
    this.removeAttribute("role");
    this.removeAttribute("aria-labelledby");
    const mark = approval.outcome?.approved ? "check" : "close";
    this._outcome = outcomeText(approval);
    this.replaceChildren(h("p", {}, icon(mark), this._outcome));
    // After a button press here, the focus must not fall back to the top of the page.
    if (hadFocus) this.closest(".log")?.focus({ preventScroll: true });
  }
}
customElements.define("approval-card", ApprovalCard);

export { outcomeText };
