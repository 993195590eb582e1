/** A tool call that waits for approval: the agent that asks, what for, and the two answers. */

import { me, memberName, page } from "../context.js";
import { clockTime, dayName, daysAgo } from "../text/time.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { media } from "../parts/media.js";
import { gettext, interpolate } from "../words.js";

const VALUE_CHARS = 600;

/** @typedef {import("../../uamp/approvals.js").Approval} Approval */
/**
 * @typedef {(contentId: string) => import("../parts/media.js").ContentItem|undefined} ItemOf finds
 *   the content item with an id in the chat
 */

/**
 * One argument; a picture or file of the chat is shown instead of its id.
 * @param {string} name
 * @param {unknown} value
 * @param {ItemOf} itemOf
 */
function row(name, value, itemOf) {
  const item = typeof value === "string" ? itemOf(value) : undefined;
  if (item)
    return html`<dt>${item.type === "image" ? gettext("picture") : gettext("file")}</dt>
      <dd class="approval-media">${media(item)}</dd>`;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return html`<dt>${name}</dt>
    <dd dir="auto">${text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}…` : text}</dd>`;
}

/**
 * The arguments as readable names and values.
 * @param {string} json
 * @param {ItemOf} itemOf
 */
function readable(json, itemOf) {
  let parsed;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return html`<pre tabindex="0">${json}</pre>`;
  }
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed))
    parsed = { value: parsed };
  const rows = Object.entries(parsed).map(([name, value]) => row(name, value, itemOf));
  return rows.length
    ? html`<dl class="approval-arguments" tabindex="0">${rows}</dl>`
    : html`<p>${gettext("No arguments.")}</p>`;
}

const whenOf = (/** @type {number} */ ms) =>
  `${daysAgo(ms) === 0 ? "" : `${dayName(ms)}, `}${clockTime(ms)}`;

/** The outcome of a request, in words. @param {Approval} approval */
export function outcomeText({ name, agent, outcome }) {
  if (!outcome || (!outcome.approved && !outcome.userId)) {
    return interpolate(
      gettext(
        "%(agent)s is no longer asking for %(name)s: it was decided, it timed out, or the answer was stopped.",
      ),
      { agent, name },
    );
  }
  const who =
    outcome.userId === me.id ? gettext("You") : outcome.username || gettext("The visitor");
  return interpolate(
    outcome.approved ? gettext("%(who)s allowed %(name)s.") : gettext("%(who)s denied %(name)s."),
    { who, name },
  );
}

/** Whom the answer waits for, as shown to members who may not decide. @param {Approval} approval */
function waitText({ userId }) {
  const name = memberName(page.state.chatId, userId);
  return name
    ? interpolate(gettext("Waiting for approval by %(name)s or an owner of the chat."), { name })
    : gettext("Waiting for approval by the person who asked, or by an owner of the chat.");
}

/** Fires (bubbling) `decide` with `{approval, approved, reason}`. */
class ApprovalCard extends View {
  static properties = {
    approval: { attribute: false },
    mayDecide: { attribute: false },
    itemOf: { attribute: false },
  };

  constructor() {
    super();
    /** @type {Approval|undefined} */
    this.approval = undefined;
    this.mayDecide = false;
    /** @type {ItemOf} */
    this.itemOf = () => undefined;
    this._hadFocus = false;
  }

  willUpdate() {
    if (!this.approval) return;
    const { state, callId } = this.approval;
    const isClosed = state === "closed";
    // Removing the tabindex of an element removes its focus, too.
    this._hadFocus = this.contains(document.activeElement);
    this.className = isClosed ? "approval is-closed" : "approval";
    Object.assign(this.dataset, { testid: "approval", state });
    const attributes = { tabindex: "-1", role: "group", "aria-labelledby": `approval-${callId}` };
    for (const [name, value] of Object.entries(attributes)) {
      if (isClosed) this.removeAttribute(name);
      else this.setAttribute(name, value);
    }
    // A disabled button loses the focus, which must not fall back to the top of the page.
    if (state === "sent" && this._hadFocus) this.focus({ preventScroll: true });
  }

  render() {
    const { approval } = this;
    if (!approval) return nothing;
    if (approval.state === "closed")
      return html`<p>
        ${glyph(approval.outcome?.approved ? "check" : "close")}${outcomeText(approval)}
      </p>`;
    return html` <p class="approval-title" id="approval-${approval.callId}">
        ${glyph("alert")}<span
          ><strong>${approval.agent}</strong> ${gettext("asks to use")}
          <code>${approval.name}</code></span
        >
      </p>
      ${readable(approval.arguments, this.itemOf)}
      ${
        this.mayDecide
          ? this._form(approval)
          : html`<p class="approval-note" data-testid="waits-for">${waitText(approval)}</p>`
      }
      <p class="approval-note">
        ${
          approval.expiresAt
            ? interpolate(gettext("Offer expires at %(time)s."), {
                time: whenOf(1000 * approval.expiresAt),
              })
            : gettext("The answer is waiting.")
        }
      </p>`;
  }

  /** @param {Approval} approval */
  _form({ name, state }) {
    const isBusy = state === "sent";
    return html` <form
      class="approval-form"
      @submit=${(/** @type {SubmitEvent} */ event) => this._refuse(event)}
    >
      <button
        type="button"
        class="button button-primary"
        data-testid="allow"
        ?disabled=${isBusy}
        @click=${() => this._decide(true, "")}
      >
        ${gettext("Allow")}
      </button>
      <button type="submit" class="button" data-testid="refuse" ?disabled=${isBusy}>
        ${gettext("Deny")}
      </button>
      <input
        class="field"
        type="text"
        maxlength="1000"
        aria-label=${interpolate(gettext("Reason for denying %(name)s (optional)"), { name })}
        placeholder=${gettext("Reason (optional)")}
        data-testid="approval-reason"
        ?disabled=${isBusy}
      />
    </form>`;
  }

  updated() {
    // After a button press here, the focus must not fall back to the top of the page.
    if (this._hadFocus && this.approval?.state === "closed")
      /** @type {HTMLElement|null} */ (this.closest(".log"))?.focus({ preventScroll: true });
  }

  /** @param {SubmitEvent} event */
  _refuse(event) {
    event.preventDefault();
    this._decide(false, /** @type {HTMLInputElement} */ (this.querySelector("input")).value.trim());
  }

  /** @param {boolean} approved @param {string} reason */
  _decide(approved, reason) {
    this.dispatchEvent(
      new CustomEvent("decide", {
        bubbles: true,
        detail: { approval: this.approval, approved, reason },
      }),
    );
  }
}
customElements.define("approval-card", ApprovalCard);
