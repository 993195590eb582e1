/**
 * The badge that says whether an answer matches its agent's signature. This browser verifies it
 * (docs/signatures.md).
 */

import { pageAt } from "../context.js";
import { publishedKeys } from "../signature-keys.js";
import { fullTime } from "../text/time.js";
import { View, glyph } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { checkAnswer, kidOf } from "../../uamp/signatures.js";
import { gettext, interpolate } from "../words.js";

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
    about: gettext("This answer was signed with a key that this server does not publish."),
    icon: "alert",
    isBad: true,
  },
  erased: {
    text: gettext("Signed, deleted"),
    about: gettext("This answer was signed. Its text has since been deleted."),
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
  text: gettext("Record changed"),
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

/** @param {Verdict} verdict */
function aboutOf(verdict) {
  const { request, claims, kid } = verdict;
  const signed = claims
    ? interpolate(gettext("Signed by %(agent)s, %(time)s, key %(key)s."), {
        agent: claims.agent,
        time: fullTime(claims.iat * 1000),
        key: kid ?? "",
      })
    : "";
  const question =
    request === "changed"
      ? gettext("The question isn't the one that was answered.")
      : request === "edited"
        ? gettext("The question was edited afterwards.")
        : "";
  return [lookOf(verdict).about, question, signed].filter(Boolean).join(" ");
}

/** The badge of a verdict. @param {Verdict} verdict */
export function signatureMark(verdict) {
  const isAskedOther =
    verdict.request === "changed" && (verdict.state === "valid" || verdict.state === "rotated");
  const { text, icon, isBad, isQuiet } = isAskedOther
    ? { ...STATES.changed, text: gettext("Question changed"), isQuiet: false }
    : lookOf(verdict);
  return html`<span
    class="mark signature ${isBad ? "is-bad" : ""}"
    title=${aboutOf(verdict)}
    data-testid="signature"
    data-state=${verdict.state}
    data-request=${verdict.request}
    >${glyph(icon)}<span class=${isQuiet ? "visually-hidden" : ""}>${text}</span></span
  >`;
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
  static properties = { entry: { attribute: false }, _verdict: { state: true } };

  constructor() {
    super();
    /** @type {Entry|undefined} */
    this.entry = undefined;
    /** @type {Verdict|null} */
    this._verdict = null;
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

  render() {
    return this._verdict ? signatureMark(this._verdict) : nothing;
  }
}
customElements.define("signature-badge", SignatureBadge);
