/**
 * Shows blocks of Mermaid code as diagrams on request. The renderer is large and reads untrusted
 * text: it is loaded at the first click, into a frame that has no origin and can load nothing
 * (docs/adr/0031-diagrams-in-a-frame.md).
 */

import { announce, h, icon } from "../dom.js";
import { gettext, interpolate } from "../words.js";

const MAX_CHARS = 20_000;
const DRAWN_WITHIN_MS = 15_000;
const [MIN_PX, HIGHEST_PX, WIDEST_PX] = [80, 1_200, 2_400];
const PROBLEM_CHARS = 300;

/**
 * Add the button to a finished block of Mermaid code.
 * @param {Element} block with the bar of a code block
 */
export function offerDiagram(block) {
  const code = block.querySelector("code")?.textContent ?? "";
  if (!code.trim() || code.length > MAX_CHARS || block.querySelector(".diagram-button")) return;
  const button = h("button", {
    type: "button",
    class: "code-copy diagram-button",
    "data-testid": "diagram-button",
  });
  button.append(icon("image"), h("span", {}, gettext("Show as diagram")));
  block.querySelector(".code-copy")?.before(button);
}

/** The current theme of the page. */
function theme() {
  const { theme: chosen } = document.documentElement.dataset;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** @param {Element} button @param {string} text */
function name(button, text) {
  const label = button.querySelector("span");
  if (label) label.textContent = text;
}

/**
 * Show an error below the bar; the code stays.
 * @param {Element} block
 * @param {string} problem
 */
function say(block, problem) {
  block.querySelector(".diagram-problem")?.remove();
  if (!problem) return;
  const text = interpolate(gettext("Couldn't draw the diagram: %(problem)s"), { problem });
  block
    .querySelector(".code-bar")
    ?.after(h("p", { class: "diagram-problem", "data-testid": "diagram-problem" }, text));
  announce(text);
}

/** Return to the code. @param {Element} block */
function showCode(block) {
  block.querySelector(".diagram")?.remove();
  const [pre, button] = [block.querySelector("pre"), block.querySelector(".diagram-button")];
  if (pre) pre.hidden = false;
  if (button) name(button, gettext("Show as diagram"));
}

/** Draw the code of a block in a frame. @param {Element} block */
function showDiagram(block) {
  const [pre, button, code] = [
    block.querySelector("pre"),
    block.querySelector(".diagram-button"),
    block.querySelector("code"),
  ];
  if (!pre || !button || !code) return;
  say(block, "");
  name(button, gettext("Show code"));
  const frame = /** @type {HTMLIFrameElement} */ (
    h("iframe", {
      class: "diagram",
      sandbox: "allow-scripts",
      src: "/diagram/",
      title: gettext("Diagram"),
      referrerpolicy: "no-referrer",
      "data-testid": "diagram",
    })
  );
  const listening = new AbortController();
  const end = () => {
    clearTimeout(timer);
    listening.abort();
  };
  const fail = (/** @type {string} */ problem) => {
    end();
    showCode(block);
    say(block, problem);
  };
  const timer = setTimeout(() => fail(gettext("it took too long.")), DRAWN_WITHIN_MS);
  addEventListener(
    "message",
    ({ source, origin, data }) => {
      // Accept messages only from this frame, which has no origin.
      if (
        source !== frame.contentWindow ||
        origin !== "null" ||
        typeof data !== "object" ||
        data === null
      )
        return;
      if (data.ready)
        frame.contentWindow?.postMessage({ code: code.textContent, theme: theme() }, "*");
      else if (typeof data.problem === "string") fail(data.problem.slice(0, PROBLEM_CHARS));
      else if (Number.isFinite(data.height) && Number.isFinite(data.width)) {
        end();
        frame.style.width = `${Math.min(Math.max(data.width, MIN_PX), WIDEST_PX)}px`;
        frame.style.height = `${Math.min(Math.max(data.height, MIN_PX), HIGHEST_PX)}px`;
        frame.classList.add("is-drawn");
        pre.hidden = true;
        announce(gettext("Diagram shown."));
      }
    },
    { signal: listening.signal },
  );
  pre.after(frame);
}

document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest(".diagram-button") : null;
  const block = button?.closest(".code-block");
  if (!button || !block) return;
  if (block.querySelector(".diagram")) showCode(block);
  else if (block.closest(".is-folded")) say(block, gettext("Show all of the message first."));
  else showDiagram(block);
});
