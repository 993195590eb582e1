/**
 * The live part of a timeline: the server streams its entries whenever they change, and the page
 * replaces those that are new or different. A hidden page disconnects. Each point in the picture
 * links to its entry.
 */

const AGAIN_MS = 10000;

/**
 * @typedef {object} Part
 * @property {{key: string, version: string, html: string}[]} items
 * @property {string} picture
 * @property {boolean} is_running
 */

const page = /** @type {HTMLElement | null} */ (document.querySelector(".timeline"));
const list = document.getElementById("timeline-items");
const picture = document.getElementById("picture");
const state = document.getElementById("timeline-state");

/** @param {string} html */
function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return /** @type {HTMLElement} */ (template.content.firstElementChild);
}

/**
 * Order the entries of a part; unchanged ones stay, with the focus.
 * @param {Part} part
 */
function show(part) {
  if (!list || !picture || !state) return;
  const keys = new Set(part.items.map((item) => item.key));
  const ended = [...list.children].filter((shown) => !keys.has(shown.id));
  for (const shown of ended) shown.remove();
  let changed = ended.length > 0;
  let before = list.firstElementChild;
  for (const item of part.items) {
    const shown = document.getElementById(item.key);
    if (shown && shown === before && shown.dataset.version === item.version) {
      before = shown.nextElementSibling;
      continue;
    }
    changed = true;
    const made = element(item.html);
    if (shown === before) before = before?.nextElementSibling ?? null;
    shown?.remove();
    list.insertBefore(made, before);
  }
  if (changed) {
    picture.innerHTML = part.picture;
    if (part.items.length) document.getElementById("timeline-empty")?.remove();
  }
  const words = part.is_running
    ? "An answer is running: this page follows it."
    : "No answer is running.";
  if (state.textContent !== words) state.textContent = words;
}

/** @type {EventSource | null} */
let tail = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let again;

function leave() {
  clearTimeout(again);
  tail?.close();
  tail = null;
}

function follow() {
  const url = page?.dataset.live;
  leave();
  if (!url || document.hidden) return;
  const source = new EventSource(url);
  tail = source;
  source.addEventListener("message", (event) => show(/** @type {Part} */ (JSON.parse(event.data))));
  source.addEventListener("gone", () => {
    leave();
    document.removeEventListener("visibilitychange", follow);
  });
  source.addEventListener("error", () => {
    // Browsers reconnect automatically unless the server refused the stream.
    if (source.readyState === EventSource.CLOSED) again = setTimeout(follow, AGAIN_MS);
  });
}

picture?.addEventListener("click", (event) => {
  const key = /** @type {Element} */ (event.target).getAttribute("data-key");
  if (key) location.hash = key;
});
document.addEventListener("visibilitychange", follow);
window.addEventListener("pagehide", leave);
follow();
