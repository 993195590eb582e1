/** The agents' pages for users: pictures, a search, and a button that starts a chat. */

import { Api, isApiError } from "../chat/api.js";
import { avatar } from "../chat/dom.js";
import { folded } from "../chat/text/folding.js";
import { gettext } from "../chat/words.js";

for (const place of /** @type {NodeListOf<HTMLElement>} */ (
  document.querySelectorAll("[data-agent]")
))
  place.replaceChildren(avatar(place.dataset.agent ?? "", "agent"));

const search = /** @type {HTMLInputElement|null} */ (document.getElementById("find-agent"));
if (search) {
  const none = /** @type {HTMLElement} */ (document.getElementById("no-agent"));
  const rows = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll(".agents > li")));
  delete search.dataset.waits;
  search.addEventListener("input", () => {
    const text = folded(search.value.trim());
    for (const row of rows)
      row.hidden = !folded(row.querySelector(".agent-text")?.textContent ?? "").includes(text);
    none.textContent = rows.every(({ hidden }) => hidden) ? gettext("No matches.") : "";
  });
}

const api = new Api(document.getElementById("start-chat")?.dataset.csrfCookie ?? "");
const problem = document.getElementById("start-chat-error");

/** @param {HTMLButtonElement} button */
async function start(button) {
  button.disabled = true;
  try {
    const chat = await api.post("/chats", {
      title: "",
      users: [],
      agents: [button.dataset.startChat],
    });
    location.assign(`/chats/${encodeURIComponent(chat.id)}`);
  } catch (error) {
    if (!isApiError(error)) throw error;
    button.disabled = false;
    if (problem) [problem.textContent, problem.hidden] = [error.message, false];
  }
}

for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (
  document.querySelectorAll("[data-start-chat]")
)) {
  delete button.dataset.waits;
  button.addEventListener("click", () => start(button));
}
