/** The buttons above code blocks copy the code, on the whole page. */

import { copyText } from "../controls/clipboard.js";
import { announce } from "../dom.js";
import { gettext } from "../words.js";

const CONFIRM_MS = 1_600;

document.addEventListener("click", async ({ target }) => {
  const button =
    target instanceof Element ? target.closest(".code-copy:not(.diagram-button)") : null;
  const code = button?.closest(".code-block")?.querySelector("code");
  if (!button || !code) return;
  const copied = await copyText(code.textContent ?? "");
  const label = button.querySelector("span");
  if (label) label.textContent = copied ? gettext("Copied") : gettext("Press Ctrl+C");
  announce(
    copied
      ? gettext("Code copied.")
      : gettext("Copying is blocked. Select the code and press Ctrl+C."),
  );
  setTimeout(() => {
    if (label) label.textContent = gettext("Copy");
  }, CONFIRM_MS);
});
