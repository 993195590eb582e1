/**
 * Asks an agent with the unsaved values of its form, and shows the outcome beside the form. Without
 * this script that part is hidden, and the page "Try it" asks the saved agent.
 */

const draft = document.getElementById("draft");
const agent = /** @type {HTMLFormElement | null} */ (document.getElementById("agent_form"));
const question = /** @type {HTMLFormElement | null} */ (document.getElementById("draft-question"));
const input = /** @type {HTMLTextAreaElement | null} */ (document.getElementById("draft-prompt"));
const outcome = document.getElementById("draft-outcome");

/** @param {string} text */
function say(text) {
  outcome?.replaceChildren(document.createTextNode(text));
}

/** Send the form with the question, and show the returned part of a page. */
async function ask() {
  if (!draft || !agent || !input || !outcome) return;
  const values = new FormData(agent);
  values.set("trial-prompt", input.value);
  const answer = await fetch(draft.dataset.address ?? "", { method: "POST", body: values });
  if (answer.redirected) {
    say("You are signed out. Sign in again in another tab, then ask again.");
  } else if (answer.ok || answer.status === 429) {
    outcome.innerHTML = await answer.text();
  } else {
    say(`The agent was not asked (HTTP ${answer.status}).`);
  }
}

if (draft && agent && question) {
  draft.hidden = false;
  const button = /** @type {HTMLButtonElement} */ (question.querySelector("button"));
  question.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    say("Asking…");
    try {
      await ask();
    } catch {
      say("The server did not answer. Try again.");
    } finally {
      button.disabled = false;
    }
  });
}
