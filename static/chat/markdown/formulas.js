/** Draws formulas with KaTeX, which is loaded when the page is idle, or with the first formula. */

const KEPT = 300;
const CHARS = 5_000;
const IDLE_MS = 3_000;
/**
 * The fonts of most formulas, loaded first: a late font would shift the content below its formula.
 */
const FONTS = [
  "16px KaTeX_Main",
  "italic 16px KaTeX_Math",
  "16px KaTeX_Size1",
  "16px KaTeX_Size2",
  "16px KaTeX_AMS",
];
const OPTIONS = { throwOnError: true, trust: false, strict: false, maxSize: 40, maxExpand: 500 };

/** @type {typeof import("../../vendor/katex/katex.js").katex|null} */
let katex = null;
/** @type {Promise<boolean>|null} */
let loading = null;
/** @type {Map<string, Element|null>} by text and kind; null for an invalid formula */
const known = new Map();

async function load() {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = String(new URL("../../vendor/katex/katex.css", import.meta.url));
  const styled = new Promise((go, fail) => Object.assign(sheet, { onload: go, onerror: fail }));
  document.head.append(sheet);
  const [module] = await Promise.all([import("../../vendor/katex/katex.js"), styled]);
  await Promise.all(FONTS.map((font) => document.fonts.load(font)));
  ({ katex } = module);
  return true;
}

/**
 * Load KaTeX once; if that fails, the next formula tries again.
 * @returns {Promise<boolean>} whether it is loaded
 */
function loaded() {
  loading ||= load().catch((error) => {
    loading = null;
    // A failed style sheet rejects with an event, modules and fonts with these errors.
    if (!(error instanceof Event || error instanceof TypeError || error instanceof DOMException))
      throw error;
    return false;
  });
  return loading;
}

/**
 * Load KaTeX before the first formula, so that drawing it moves nothing; skipped for users who save
 * data.
 */
export function loadFormulasWhenIdle() {
  if (/** @type {any} */ (navigator).connection?.saveData) return;
  const begin = () => {
    loaded();
  };
  if ("requestIdleCallback" in globalThis) requestIdleCallback(begin, { timeout: IDLE_MS });
  else setTimeout(begin, IDLE_MS);
}

/** Draw a formula if KaTeX is loaded. @param {Element} place whose text is the formula */
export function drawKnownFormula(place) {
  if (katex) draw(place, place.textContent ?? "");
}

/** Draw a formula, loading KaTeX if needed. @param {Element} place whose text is the formula */
export function drawFormula(place) {
  if (katex || place.classList.contains("is-drawn")) return;
  const text = place.textContent ?? "";
  loaded().then((isHere) => isHere && place.textContent === text && draw(place, text));
}

/** @param {Element} place @param {string} text */
function draw(place, text) {
  if (text.length > CHARS) return;
  const isBlock = place.localName === "div";
  const key = `${isBlock} ${text}`;
  if (!known.has(key)) {
    known.set(key, made(text, isBlock));
    if (known.size > KEPT) known.delete(known.keys().next().value ?? "");
  }
  const formula = known.get(key);
  if (!formula) return;
  place.replaceChildren(formula.cloneNode(true));
  place.classList.add("is-drawn");
}

/** @param {string} text @param {boolean} displayMode @returns {Element|null} */
function made(text, displayMode) {
  const box = document.createElement("span");
  if (!katex) return null;
  try {
    katex.render(text, box, { ...OPTIONS, displayMode });
  } catch (error) {
    if (!(error instanceof katex.ParseError)) throw error;
    return null;
  }
  return box.firstElementChild;
}
