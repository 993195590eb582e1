/**
 * The badge that says whether an answer matches its agent's signature. This browser verifies it
 * (docs/signatures.md). A click shows what was signed.
 */

import { placeClear } from "../actions/placing.js";
import { pageAt, store } from "../context.js";
import { publishedKeys } from "../signature-keys.js";
import { formatExact } from "../money/amounts.js";
import { fullTime } from "../text/time.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { checkAnswer, kidOf } from "../../uamp/signatures.js";
import { gettext } from "../words.js";

/**
 * @typedef {import("../store/entry.js").Entry} Entry
 * @typedef {import("../../uamp/types.js").Verdict} Verdict
 * @typedef {import("../../uamp/types.js").SignedMessage} SignedMessage
 */

/**
 * @type {Record<string, {text: string, about: string, icon: "seal"|"alert", isBad?: boolean,
 *   isQuiet?: boolean}>}
 */
const STATES = {
  valid: {
    text: gettext("Signed"),
    about: gettext("This is exactly what the agent signed."),
    icon: "seal",
    isQuiet: true,
  },
  rotated: {
    text: gettext("Signed, key rotated"),
    about: gettext("This is what the agent signed. It has since switched to a newer key."),
    icon: "seal",
  },
  changed: {
    text: gettext("Changed"),
    about: gettext("This isn't what the agent signed: it was changed afterwards."),
    icon: "alert",
    isBad: true,
  },
  unsigned: {
    text: gettext("Unsigned"),
    about: gettext("This answer has no signature."),
    icon: "seal",
  },
  unknown_key: {
    text: gettext("Key unknown"),
    about: gettext("This answer was signed with a key that this server doesn't publish."),
    icon: "alert",
    isBad: true,
  },
  erased: {
    text: gettext("Deleted"),
    about: gettext("The text of this answer was deleted, so there is nothing left to verify."),
    icon: "seal",
  },
  unsupported: {
    text: gettext("Not verified"),
    about: gettext("This browser can't verify this kind of signature."),
    icon: "seal",
  },
};

const STORED_CHANGED = {
  ...STATES.changed,
  text: gettext("Stored copy changed"),
  about: gettext(
    "The message is exactly what the agent signed, but the stored answer that other programs read was changed.",
  ),
};

const USAGE_CHANGED = {
  ...STORED_CHANGED,
  about: gettext(
    "The message is exactly what the agent signed, but the stored usage or cost of the answer was changed.",
  ),
};

const PARTS = { response: STORED_CHANGED, usage: USAGE_CHANGED };

/** @param {Verdict} verdict */
const lookOf = ({ state, part }) => (part ? PARTS[part] : STATES[state]);

/** @type {Record<import("../../uamp/types.js").RequestState, string>} */
const QUESTIONS = {
  same: gettext("The question is the one that was answered."),
  changed: gettext("The question isn't the one that was answered."),
  edited: gettext("The question was edited afterwards."),
  erased: gettext("The question has since been deleted."),
  absent: "",
};

/**
 * What an agent signed, for people.
 * @param {import("../../uamp/types.js").Claims} claims
 * @param {string} [kid]
 * @returns {[string, unknown][]} labels and values
 */
function factsOf(claims, kid) {
  const { agent, iat, price, models, digital_source_type: isByAi } = claims;
  /** @type {[string, unknown][]} */
  const facts = [
    [gettext("Agent"), agent],
    [gettext("Signed"), fullTime(iat * 1000)],
    [gettext("Key"), html`<code>${kid}</code>`],
  ];
  if (Array.isArray(models) && models.length) facts.push([gettext("Model"), models.join(", ")]);
  if (price) facts.push([gettext("Price"), formatExact(price.amount, price.currency)]);
  if (price?.transfer_id)
    facts.push([gettext("Transfer"), html`<code>${price.transfer_id}</code>`]);
  if (isByAi) facts.push([gettext("Origin"), gettext("Made by AI")]);
  return facts;
}

/** What a badge means, and what was signed. @param {Verdict} verdict */
export const signatureDetails = (verdict) => {
  const { request, claims, kid } = verdict;
  return html`<p>${lookOf(verdict).about}</p>
    ${QUESTIONS[request] ? html`<p>${QUESTIONS[request]}</p>` : nothing}
    ${
      claims
        ? html`<dl class="signed-facts">
            ${factsOf(claims, kid).map(
              ([label, value]) => html`<dt>${label}</dt>
                <dd dir="auto">${value}</dd>`,
            )}
          </dl>`
        : nothing
    }`;
};

/**
 * The badge of a verdict.
 * @param {Verdict} verdict
 * @param {object} [details]
 * @param {boolean} [details.isOpen]
 * @param {(event: MouseEvent) => void} [details.toggle]
 * @param {() => void} [details.press] before a press closes them
 */
export function signatureMark(verdict, { isOpen = false, toggle, press } = {}) {
  const isAskedOther =
    verdict.request === "changed" && (verdict.state === "valid" || verdict.state === "rotated");
  const { text, icon, isBad, isQuiet } = isAskedOther
    ? { ...STATES.changed, text: gettext("Question changed"), isQuiet: false }
    : lookOf(verdict);
  return html`<button
    type="button"
    class="mark signature ${isBad ? "is-bad" : ""}"
    title=${gettext("What was signed")}
    aria-haspopup="dialog"
    aria-expanded=${String(isOpen)}
    data-testid="signature"
    data-state=${verdict.state}
    data-request=${verdict.request}
    @pointerdown=${press}
    @click=${toggle}
  >
    ${glyph(icon)}<span class=${isQuiet ? "visually-hidden" : ""}>${text}</span>
  </button>`;
}

/** @param {Entry} entry @returns {SignedMessage} */
export const signedMessage = (entry) => ({
  id: entry.id,
  role: entry.role,
  name: entry.name,
  content: entry.content,
  content_items: entry.content_items,
  response_id: entry.response_id,
  status: entry.status,
  signature: entry.signature,
  stored_output_hash: entry.stored_output_hash,
  stored_usage_hash: entry.stored_usage_hash,
  deleted_at: entry.deletedAt,
  edited_at: entry.editedAt,
  salt: entry.salt,
});

/**
 * Whether an agent on this server would have signed this answer, and its signature can be checked;
 * incomplete answers are signed if they were paid.
 * @param {Entry} entry
 */
export const isSignable = (entry) =>
  entry.sender_kind === "agent" &&
  (entry.status === "completed" || Boolean(entry.signature)) &&
  Boolean(entry.response_id) &&
  !entry.copied_from &&
  entry.signature !== undefined;

class SignatureBadge extends View {
  static properties = {
    entry: { attribute: false },
    _verdict: { state: true },
    _isOpen: { state: true },
  };

  constructor() {
    super();
    /** @type {Entry|undefined} */
    this.entry = undefined;
    /** @type {Verdict|null} */
    this._verdict = null;
    this._isOpen = false;
    /** Whether the press that becomes a click closes the details. */
    this._isClosing = false;
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues<SignatureBadge>} changed */
  updated(changed) {
    if (changed.has("entry")) this._verify();
  }

  async _verify() {
    const { entry } = this;
    if (!entry) return;
    const { chatId, entries } = pageAt(this).state;
    try {
      const keys = entry.signature ? await publishedKeys.of(kidOf(entry.signature)) : [];
      let verdict = await checkAnswer(signedMessage(entry), keys, { chatId });
      const question = entries.find(({ id }) => id === verdict.claims?.request_id);
      if (question)
        verdict = await checkAnswer(signedMessage(entry), keys, {
          chatId,
          question: signedMessage(question),
        });
      if (this.entry === entry) this._verdict = verdict;
    } catch (error) {
      // Without the keys, the badge claims nothing about the answer.
      if (!(error instanceof TypeError)) throw error;
      if (this.entry === entry) this._verdict = null;
    }
  }

  /** @param {MouseEvent} event */
  async _toggle({ currentTarget }) {
    const isClosing = this._isClosing;
    this._isClosing = false;
    if (isClosing || this._isOpen) {
      /** @type {HTMLElement|null} */ (this.querySelector("[popover]"))?.hidePopover();
      return;
    }
    this._isOpen = true;
    await this.updateComplete;
    const box = /** @type {HTMLElement} */ (this.querySelector("[popover]"));
    box.showPopover();
    placeClear(box, /** @type {HTMLElement} */ (currentTarget));
    box.focus();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key !== "Escape") return;
    // The page has its own uses for this key.
    event.stopPropagation();
    event.preventDefault();
    /** @type {HTMLElement} */ (event.currentTarget).hidePopover();
    this.querySelector("button")?.focus();
  }

  /** Verify the whole chat. @param {import("../store/chat.js").Chat} chat */
  _verifyChat(chat) {
    /** @type {HTMLElement|null} */ (this.querySelector("[popover]"))?.hidePopover();
    this.dispatchEvent(new CustomEvent("verify-chat", { bubbles: true, detail: chat }));
  }

  render() {
    if (!this._verdict) return nothing;
    const mark = signatureMark(this._verdict, {
      isOpen: this._isOpen,
      toggle: (event) => this._toggle(event),
      press: () => {
        this._isClosing = this._isOpen;
      },
    });
    return html`${mark}${this._isOpen ? this._details(this._verdict) : nothing}`;
  }

  /** @param {Verdict} verdict */
  _details(verdict) {
    const chat = store.get(pageAt(this).state.chatId);
    return html`<div
      class="menu signed"
      popover="auto"
      role="dialog"
      tabindex="-1"
      aria-label=${gettext("What was signed")}
      data-testid="signature-details"
      @toggle=${(/** @type {ToggleEvent} */ { newState }) => {
        this._isOpen = newState === "open";
      }}
      @keydown=${(/** @type {KeyboardEvent} */ event) => this._key(event)}
    >
      ${signatureDetails(verdict)}
      ${
        chat && !chat.home
          ? html`<button
              type="button"
              class="button button-quiet"
              data-testid="verify-chat"
              @click=${() => this._verifyChat(chat)}
            >
              ${glyph("seal")}${gettext("Verify the chat…")}
            </button>`
          : nothing
      }
    </div>`;
  }
}
customElements.define("signature-badge", SignatureBadge);
