/** Light, dark, or as the system is: a choice that this device keeps, for all pages. */

const KEPT = "uamp.theme";

export const THEMES = [
  { value: "system", label: "as the system" },
  { value: "light", label: "light" },
  { value: "dark", label: "dark" },
];

/** @returns {string} the value of the theme that was chosen */
export function theme() {
  const kept = localStorage.getItem(KEPT);
  return THEMES.some(({ value }) => value === kept) ? String(kept) : "system";
}

function show() {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** @param {string} value of THEMES */
export function setTheme(value) {
  localStorage.setItem(KEPT, value);
  show();
}

addEventListener("storage", (event) => event.key === KEPT && show());
show();
