/** A chat, a person or an agent in the search results. */

import { face } from "../view.js";
import { html } from "../../vendor/lit/lit.js";

/**
 * @param {string} name
 * @param {"user"|"agent"} kind
 * @param {string} note
 * @param {() => void} act
 */
export const nameRow = (name, kind, note, act) =>
  html`<li>
    <button type="button" class="search-name" @click=${act}>
      ${face(name, kind)}<span><b>${name}</b> <small>${note}</small></span>
    </button>
  </li>`;
