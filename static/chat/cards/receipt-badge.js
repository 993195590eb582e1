/**
 * The badge of a receipt: whether the server signed it, for this answer. This browser verifies it
 * (docs/signatures.md).
 */

import { pageAt } from "../context.js";
import { saveFile } from "../dom.js";
import { signedMessage } from "../log/signature-badge.js";
import { formatExact } from "../money/amounts.js";
import { publishedKeys } from "../signature-keys.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { checkReceipt, kidOf } from "../../uamp/signatures.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("./receipts.js").Receipt} Receipt
 * @typedef {import("../store/entry.js").Entry} Entry
 * @typedef {import("../../uamp/types.js").ReceiptVerdict} ReceiptVerdict
 */

/** @type {Record<string, {text: string, icon: "seal"|"alert", isBad?: boolean}>} */
const STATES = {
  valid: { text: gettext("Receipt signed"), icon: "seal" },
  rotated: { text: gettext("Receipt signed, key rotated"), icon: "seal" },
  changed: { text: gettext("Receipt changed"), icon: "alert", isBad: true },
  unsigned: { text: gettext("Receipt unsigned"), icon: "seal" },
  unknown_key: { text: gettext("Receipt with an unknown key"), icon: "alert", isBad: true },
  unsupported: { text: gettext("Not verified"), icon: "seal" },
};

/**
 * The answer that a receipt is compared with. None once it was deleted: the signature is then
 * withheld, and a receipt read before that still names it.
 * @param {Entry|undefined} entry
 */
const answerOf = (entry) =>
  !entry || entry.deletedAt || entry.signature === undefined ? undefined : signedMessage(entry);

/**
 * Saves a receipt with the answer's signature and the keys that verify both, for `uamp verify`.
 * @param {Receipt} receipt
 * @param {Entry|undefined} entry
 * @param {string} chatId
 */
async function saveReceipt(receipt, entry, chatId) {
  const answer = answerOf(entry);
  const kids = [receipt.document, answer?.signature]
    .filter((signed) => typeof signed === "string")
    .map(kidOf);
  const keys = (await Promise.all(kids.map((kid) => publishedKeys.of(kid)))).flat();
  const message = answer && {
    id: answer.id,
    response_id: answer.response_id,
    signature: answer.signature,
  };
  const { delegated: _delegated, ...own } = receipt;
  saveFile(
    `receipt-${receipt.response_id}.json`,
    JSON.stringify({ receipt: own, chat_id: chatId, message, keys }),
  );
}

class ReceiptBadge extends View {
  static properties = {
    receipt: { attribute: false },
    entry: { attribute: false },
    _verdict: { state: true },
  };

  constructor() {
    super();
    /** @type {Receipt|undefined} */
    this.receipt = undefined;
    /** @type {Entry|undefined} the answer; none for a receipt of delegated work */
    this.entry = undefined;
    /** @type {ReceiptVerdict|null} */
    this._verdict = null;
  }

  /** @param {import("../../vendor/lit/lit.js").PropertyValues<ReceiptBadge>} changed */
  updated(changed) {
    if (changed.has("receipt") || changed.has("entry")) this._verify();
  }

  async _verify() {
    const { receipt, entry } = this;
    if (!receipt) return;
    try {
      const message = answerOf(entry);
      const kids = [receipt.document, message?.signature]
        .filter((signed) => typeof signed === "string")
        .map(kidOf);
      const keys = (await Promise.all(kids.map((kid) => publishedKeys.of(kid)))).flat();
      const verdict = await checkReceipt(receipt, keys, {
        chatId: pageAt(this).state.chatId,
        message,
      });
      if (this.receipt === receipt && this.entry === entry) this._verdict = verdict;
    } catch (error) {
      // Without the keys, the badge claims nothing about the receipt.
      if (!(error instanceof TypeError)) throw error;
      if (this.receipt === receipt) this._verdict = null;
    }
  }

  async _save() {
    if (this.receipt) await saveReceipt(this.receipt, this.entry, pageAt(this).state.chatId);
  }

  render() {
    if (!this._verdict) return nothing;
    const { state, price } = this._verdict;
    const { text, icon, isBad } = STATES[state];
    const about = price
      ? interpolate(gettext("The agent signed a different price: %(price)s."), {
          price: formatExact(price.amount, price.currency),
        })
      : "";
    const mark = html`<p
      class="mark signature ${isBad ? "is-bad" : ""}"
      data-testid="receipt-signature"
      data-state=${state}
    >
      ${glyph(icon)}<span>${text}${about ? html`. ${about}` : nothing}</span>
    </p>`;
    if (!this.receipt?.document) return mark;
    return html`${mark}<button
        type="button"
        class="button button-quiet"
        data-testid="save-receipt"
        @click=${this._save}
      >
        ${glyph("down")}${gettext("Download receipt")}
      </button>`;
  }
}
customElements.define("receipt-badge", ReceiptBadge);
