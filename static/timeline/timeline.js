/**
 * The live part of a timeline: while an answer runs, the page reads its entries again and changes those that are new or different.
 * A point of the picture leads to its entry.
 */

const RUNNING_MS = 2000;
const IDLE_MS = 10000;

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

/** Put the entries of a part in their order; one that did not change stays, with its focus. @param {Part} part */
function show(part) {
  if (!list || !picture || !state) return;
  const wanted = new Set(part.items.map((item) => item.key));
  for (const shown of [...list.children]) if (!wanted.has(shown.id)) shown.remove();
  let changed = false;
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
  const words = part.is_running ? "An answer is running: this page follows it." : "No answer is running.";
  if (state.textContent !== words) state.textContent = words;
}

async function follow() {
  const url = page?.dataset.live;
  if (!url) return;
  let running = Boolean(page?.dataset.running);
  for (;;) {
    await new Promise((done) => setTimeout(done, running ? RUNNING_MS : IDLE_MS));
    if (document.hidden) continue;
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" }, redirect: "error" });
      if (answer.status === 403 || answer.status === 404) return;
      if (!answer.ok) continue;
      const part = /** @type {Part} */ (await answer.json());
      show(part);
      running = part.is_running;
    } catch (error) {
      console.info("the timeline was not read", error);
      running = false;
    }
  }
}

picture?.addEventListener("click", (event) => {
  const key = /** @type {Element} */ (event.target).getAttribute("data-key");
  if (key) location.hash = key;
});
follow();
