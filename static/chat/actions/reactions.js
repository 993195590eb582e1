/** The emoji reactions of a message, each with a count; a click adds or removes the user's own. */

import { html, nothing } from "../../vendor/lit/lit.js";
import { attempt, nameOf, react } from "./acts.js";
import { gettext, interpolate, locale } from "../words.js";

const NAMED = 6;

/** @param {import("../store/entry.js").Reaction} reaction */
function givers({ count, users }) {
  const names = users.slice(0, NAMED).map(nameOf);
  if (count > names.length)
    names.push(interpolate(gettext("%(n)s more"), { n: count - names.length }));
  return new Intl.ListFormat(locale).format(names);
}

/** @param {import("../store/entry.js").Entry} entry */
export function reactionsTemplate(entry) {
  if (!entry.reactions.length) return nothing;
  /** @param {MouseEvent} event @param {import("../store/entry.js").Reaction} reaction */
  const toggle = (event, { emoji, own }) =>
    attempt(/** @type {HTMLElement} */ (event.currentTarget), () => react(entry, emoji, !own));
  return html`<div class="reactions" role="group" aria-label=${gettext("Reactions")}>
    ${entry.reactions.map(
      (reaction) =>
        html`<button
          type="button"
          class="reaction"
          aria-pressed=${String(reaction.own)}
          aria-label="${reaction.emoji} ${reaction.count}: ${givers(reaction)}"
          title=${givers(reaction)}
          data-testid="reaction"
          @click=${(/** @type {MouseEvent} */ event) => toggle(event, reaction)}
        >
          <span aria-hidden="true">${reaction.emoji}</span
          ><span aria-hidden="true">${reaction.count}</span>
        </button>`,
    )}
  </div>`;
}
