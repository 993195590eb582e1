/**
 * The page for connecting your own agents: the button that copies the command, and who is
 * connected.
 */

import { gettext } from "../chat/words.js";

const SECONDS = 2;

const command = /** @type {HTMLTextAreaElement | null} */ (document.getElementById("secret"));
const copy = document.getElementById("copy");
const copied = document.getElementById("copied");

if (command && copy && copied) {
  command.select();
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      command.select();
      await navigator.clipboard.writeText(command.value);
      copied.textContent = gettext("Copied.");
      copy.textContent = gettext("Copied");
    });
  }
}

/** Show for each agent whether a daemon is connected. @param {Map<string, boolean>} online */
function show(online) {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll(".connection")
  )) {
    const isConnected = online.get(place.dataset.agent ?? "") ?? false;
    const words = isConnected ? gettext("Connected") : gettext("Not connected");
    place.classList.toggle("is-connected", isConnected);
    // Rewriting an unchanged status would make screen readers announce it again.
    if (place.textContent !== words) place.textContent = words;
  }
}

async function look() {
  if (document.visibilityState === "visible") {
    const answer = await fetch("/api/v1/connect-tokens", {
      headers: { Accept: "application/json" },
    }).catch(() => null);
    if (answer?.status === 401 || answer?.status === 403) return;
    if (answer?.ok) {
      const { data } = await answer.json();
      show(
        new Map(
          data.map((/** @type {{ agent: string, online: boolean }} */ one) => [
            one.agent,
            one.online,
          ]),
        ),
      );
    }
  }
  setTimeout(look, SECONDS * 1000);
}

if (document.querySelector(".connection")) look();
