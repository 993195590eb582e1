/** The buttons in the row of the composer. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/**
 * @param {{name: string, label: string, icon: Parameters<typeof glyph>[0], isHidden?: boolean,
 *   press: () => void}} button
 */
export const composerButton = ({ name, label, icon, isHidden = false, press }) =>
  html`<button
    type="button"
    class="icon-button ${name}"
    aria-label=${label}
    title=${label}
    data-testid=${name}
    ?hidden=${isHidden}
    @click=${press}
  >
    ${glyph(icon)}
  </button>`;

/**
 * The button that stops answers; hidden without any.
 * @param {import("../../uamp/live-response.js").LiveResponse[]} own
 * @param {() => void} press
 */
export function stopButton(own, press) {
  const names = own.map((response) => response.agent || "agent").join(", ");
  const label = names
    ? interpolate(gettext("Stop %(name)s"), { name: names })
    : gettext("Stop the answer");
  return composerButton({ name: "stop", label, icon: "stop", isHidden: !names, press });
}

/** @param {boolean} canSend */
export const sendButton = (canSend) =>
  html`<button
    type="submit"
    class="icon-button send"
    aria-label=${gettext("Send")}
    title=${gettext("Send")}
    data-testid="send"
    ?disabled=${!canSend}
  >
    ${glyph("send")}
  </button>`;
