/**
 * The theme and density of every page. The server renders them into the page; this script follows
 * changes in other tabs, and stores them in a cookie for the pages before signing in. Loaded by all
 * pages.
 */

const YEAR_SECONDS = 31_536_000;
const CHANNEL = "uamp.appearance";

/** @typedef {{theme: string, density: string}} Appearance */

/** Broadcasts changes between the tabs of this browser. */
const tabs = new BroadcastChannel(CHANNEL);
tabs.addEventListener("message", ({ data }) => show(data));

/** @param {Appearance} appearance */
function show({ theme, density }) {
  const { dataset } = document.documentElement;
  if (theme === "light" || theme === "dark") dataset.theme = theme;
  else delete dataset.theme;
  if (density === "compact") dataset.density = density;
  else delete dataset.density;
}

/** Change the appearance of the pages, in all tabs. @param {Appearance} appearance */
export function setAppearance({ theme, density }) {
  show({ theme, density });
  document.cookie = `theme=${theme}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
  tabs.postMessage({ theme, density });
}
