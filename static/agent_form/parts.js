/**
 * Hides inputs that apply only to some values of a select (`data-only`) for its other values,
 * unless they are filled in.
 */

/** @param {HTMLElement} part */
function isFilled(part) {
  const input = /** @type {HTMLInputElement | HTMLSelectElement | null} */ (
    part.querySelector("input, select, textarea")
  );
  if (!input) return false;
  return input instanceof HTMLInputElement && input.type === "checkbox"
    ? input.checked
    : input.value !== "";
}

for (const group of document.querySelectorAll(".parts[data-follows]")) {
  const select = /** @type {HTMLSelectElement | null} */ (
    document.getElementById(/** @type {HTMLElement} */ (group).dataset.follows ?? "")
  );
  const show = () => {
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (
      group.querySelectorAll(".part[data-only]")
    )) {
      const only = part.dataset.only?.split(" ") ?? [];
      part.hidden = select !== null && !only.includes(select.value) && !isFilled(part);
    }
  };
  select?.addEventListener("change", show);
  show();
}
