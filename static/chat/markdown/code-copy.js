/** The buttons above code blocks copy the code, on the whole page. */

import { copyText } from "../clipboard.js";
import { announce } from "../dom.js";

const CONFIRM_MS = 1_600;

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.(".code-copy");
  if (!button) return;
  const copied = await copyText(button.closest(".code-block").querySelector("code").textContent);
  const label = button.querySelector("span");
  label.textContent = copied ? "Copied" : "Press Ctrl+C";
  announce(copied ? "Code copied." : "Copying is blocked: select the code and press Ctrl+C.");
  setTimeout(() => {
    label.textContent = "Copy";
  }, CONFIRM_MS);
});
