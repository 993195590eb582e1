/** The option to send a reply to the chat as well. */

import { html } from "../../vendor/lit/lit.js";
import { gettext } from "../words.js";

export const alsoInChat = () =>
  html`<label class="also-in-chat"
    ><input type="checkbox" data-testid="also-in-chat" />${gettext("Also send to the chat")}</label
  >`;
