/** The choice of a language. */

import { api, start } from "../context.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

/** The choice reloads the page in the chosen language, and keeps unsent texts. */
export function languages() {
  const current = document.documentElement.lang;
  return html`<form
    class="setting-choice"
    method="post"
    action="/language"
    aria-labelledby="setting-language"
  >
    <h3 id="setting-language">${gettext("Language")}</h3>
    <input type="hidden" name="csrfmiddlewaretoken" .value=${api.csrfToken()} /><input
      type="hidden"
      name="next"
      .value=${location.pathname}
    />
    <div class="setting-links">
      ${start.languages.map(
        ([code, name]) =>
          html`<button
            class="button"
            name="language"
            value=${code}
            lang=${code}
            aria-current=${code === current ? "true" : nothing}
          >
            ${name}
          </button>`,
      )}
    </div>
  </form>`;
}
