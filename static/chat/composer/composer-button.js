/** A button in the row of the composer. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";

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
