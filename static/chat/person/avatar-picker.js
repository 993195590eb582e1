/** Chooses an avatar: an emoji and a colour. The picture is chosen beside it. */

import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/** Colours on which white letters are legible. */
const COLOURS = [
  "#bd4054",
  "#b74c05",
  "#93630b",
  "#3f7b05",
  "#007c59",
  "#007696",
  "#1b6cc7",
  "#6a5ec8",
  "#954fb1",
  "#b04488",
  "#4b5563",
];
const NAMES = [
  gettext("Red"),
  gettext("Orange"),
  gettext("Ochre"),
  gettext("Green"),
  gettext("Sea green"),
  gettext("Teal"),
  gettext("Blue"),
  gettext("Violet"),
  gettext("Purple"),
  gettext("Pink"),
  gettext("Grey"),
];

/**
 * Radio buttons for colours; the first is the colour derived from the name.
 * @param {string} name of the field
 * @param {string} chosen
 * @param {(colour: string) => void} onChoice
 */
export const colourChoice = (name, chosen, onChoice) =>
  html`<fieldset class="colours">
    <legend>${gettext("Colour")}</legend>
    ${["", ...COLOURS].map(
      (colour, at) =>
        html`<label class="colour" title=${at ? NAMES[at - 1] : gettext("Automatic")}>
          <input
            type="radio"
            name=${name}
            value=${colour}
            .checked=${colour === chosen}
            @change=${() => onChoice(colour)}
          />
          <span
            class="colour-dot ${colour ? "" : "is-automatic"}"
            .style=${colour ? `background: ${colour}` : ""}
          ></span>
          <span class="visually-hidden">${at ? NAMES[at - 1] : gettext("Automatic")}</span></label
        >`,
    )}
  </fieldset>`;
