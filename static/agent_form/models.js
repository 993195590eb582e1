/**
 * Suggests the models of the chosen provider. They are requested when the field gets the focus, and
 * again after the provider, its address or its key has changed. Other models can be typed.
 */

const suggestions = document.getElementById("model-list");
const form = /** @type {HTMLFormElement | null} */ (document.getElementById("agent_form"));
const model = /** @type {HTMLInputElement | null} */ (document.getElementById("id_model"));
const INPUTS = [
  "csrfmiddlewaretoken",
  "provider",
  "options__base_url",
  "options__api_key_env",
  "key",
];
/** The inputs of the last request, so that it is not repeated. */
let asked = "";

async function suggest() {
  if (!suggestions || !form) return;
  const all = new FormData(form);
  const values = new URLSearchParams(INPUTS.map((name) => [name, String(all.get(name) ?? "")]));
  if (values.toString() === asked) return;
  asked = values.toString();
  const mine = asked;
  suggestions.replaceChildren();
  const answer = await fetch(suggestions.dataset.address ?? "", { method: "POST", body: values });
  if (!answer.ok || answer.redirected || mine !== asked) return;
  const { models } = await answer.json();
  suggestions.replaceChildren(
    ...models.map((/** @type {string} */ name) => {
      const option = document.createElement("option");
      option.value = name;
      return option;
    }),
  );
}

if (suggestions && form && model) {
  model.setAttribute("list", suggestions.id);
  model.addEventListener("focus", () => {
    suggest().catch(() => {
      asked = "";
    });
  });
}
