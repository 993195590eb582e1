/** The button that copies a new API key; without a clipboard, the user copies the field by hand. */

import { gettext } from "../chat/words.js";

const secret = document.getElementById("secret");
const copy = document.getElementById("copy");

secret.select();
if (navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    secret.select();
    await navigator.clipboard.writeText(secret.value);
    document.getElementById("copied").textContent = gettext("Copied.");
    copy.textContent = gettext("Copied");
  });
}
