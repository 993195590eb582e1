/**
 * A picture of a type that browsers cannot show, as converted by the server; without a preview, a
 * chip to download it.
 */

import { View } from "../view.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/** @typedef {import("../dialogs/media-viewer.js").Medium} Medium */

/**
 * A plain click opens the viewer; clicks for a new tab or a download keep their meaning. Fires
 * (bubbling) `view-media`.
 * @param {MouseEvent} event
 * @param {Medium} medium
 */
export function view(event, medium) {
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  event.currentTarget?.dispatchEvent(
    new CustomEvent("view-media", { bubbles: true, detail: medium }),
  );
}

class PicturePreview extends View {
  static properties = {
    src: { attribute: false },
    name: { attribute: false },
    chip: { attribute: false },
    _isMissing: { state: true },
  };

  constructor() {
    super();
    /** The address of the file itself. */
    this.src = "";
    this.name = "";
    /** @type {unknown} shown where there is no preview */
    this.chip = nothing;
    this._isMissing = false;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("src")) this._isMissing = false;
  }

  render() {
    if (this._isMissing) return this.chip;
    const { src, name } = this;
    const shown = `${src}/preview`;
    return html`<a
      class="media-image"
      href=${src}
      download=${name}
      aria-label=${interpolate(gettext("Open %(name)s"), { name })}
      data-name=${name}
      data-shown=${shown}
      @click=${(/** @type {MouseEvent} */ event) =>
        view(event, { kind: "image", url: src, shown, name })}
      ><img src=${shown} alt=${name} loading="lazy" @error=${() => (this._isMissing = true)}
    /></a>`;
  }
}
customElements.define("picture-preview", PicturePreview);
