/** Links from the settings to the account pages. */

import { me, start } from "../context.js";
import { html, nothing } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

export const accountLinks = () =>
  html`<p>${interpolate(gettext("You are signed in as %(name)s."), { name: me.username })}</p>
    <ul class="setting-links">
      <li><a class="button" href="/account/password">${gettext("Change password")}</a></li>
      <li>
        <a class="button" href="/account#devices-title">${gettext("Sign out everywhere else")}</a>
      </li>
      <li><a class="button" href="/account#keys-title">${gettext("API keys")}</a></li>
      <li><a class="button" href="/money">${gettext("Money")}</a></li>
      ${
        start.may_connect_model
          ? html`<li>
              <a class="button" href="/connect-model">${gettext("Connect a model")}</a>
            </li>`
          : nothing
      }
    </ul>`;
