/**
 * Renders Markdown as nodes that are safe to insert, with finishing touches: code gets a bar,
 * formulas are drawn, tables scroll.
 */

import { DOMPurify } from "../../vendor/markdown/markdown.js";
import { me } from "../context.js";
import { h, icon } from "../dom.js";
import { colour } from "./colours.js";
import { offerDiagram } from "./diagrams.js";
import { drawFormula, drawKnownFormula } from "./formulas.js";
import { blocksOf } from "./parser.js";
import { gettext, interpolate } from "../words.js";

const TAGS = [
  "a",
  "bdi",
  "blockquote",
  "br",
  "code",
  "del",
  "details",
  "div",
  "em",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "hr",
  "img",
  "kbd",
  "li",
  "mark",
  "ol",
  "p",
  "pre",
  "s",
  "span",
  "strong",
  "sub",
  "summary",
  "sup",
  "table",
  "tbody",
  "td",
  "th",
  "thead",
  "tr",
  "ul",
];
const ADDRESSES = ["href", "src", "data-src"];
const WORDS = [
  "title",
  "target",
  "rel",
  "data-language",
  "alt",
  "loading",
  "start",
  "data-alt",
  "class",
  "role",
  "aria-label",
];

/** @param {string} html @returns {DocumentFragment} */
export function sanitised(html) {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: [...ADDRESSES, ...WORDS],
    ADD_URI_SAFE_ATTR: WORDS,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|tel:|sms:|\/(?!\/))/i,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** @param {ParentNode} content @param {string} selector @returns {NodeListOf<HTMLElement>} */
const all = (content, selector) => content.querySelectorAll(selector);

/** @param {DocumentFragment} content sanitised */
export function prepared(content) {
  // Each block has its own direction: a message may mix languages.
  for (const block of content.children) if (block instanceof HTMLElement) block.dir = "auto";
  for (const block of all(content, ".code-block")) {
    block.prepend(codeBar(block.dataset.language || ""));
    for (const code of all(block, "pre")) code.tabIndex = 0;
  }
  for (const table of all(content, ".table-scroll")) table.tabIndex = 0;
  const own = me.username.toLowerCase();
  for (const mention of all(content, ".mention"))
    mention.classList.toggle("is-me", mention.textContent?.slice(1).toLowerCase() === own);
  for (const box of all(content, ".task-box"))
    box.setAttribute("aria-label", box.matches(".is-done") ? gettext("Done") : gettext("Not done"));
  for (const formula of content.querySelectorAll(".math")) drawKnownFormula(formula);
  for (const image of all(content, ".remote-image")) {
    const { src = "", alt = "" } = image.dataset;
    // Unparsable addresses stay plain descriptions.
    if (URL.canParse(src)) image.replaceWith(remoteImage(src, alt));
  }
  return content;
}

/**
 * Highlight the code and draw the formulas of a block that no longer changes.
 * @param {Element} block
 */
export function finish(block) {
  for (const code of block.querySelectorAll("pre > code")) {
    const { language } = /** @type {HTMLElement} */ (code.closest(".code-block")).dataset;
    if (language) colour(code, language);
    if (language?.toLowerCase() === "mermaid")
      offerDiagram(/** @type {Element} */ (code.closest(".code-block")));
  }
  const formulas = block.matches(".math") ? [block] : block.querySelectorAll(".math");
  for (const formula of formulas) drawFormula(formula);
}

/** Render a whole text as nodes. @param {string} text @returns {DocumentFragment} */
export function drawn(text) {
  const content = prepared(
    sanitised(
      blocksOf(text)
        .map(({ html }) => html)
        .join("")
        .trimEnd(),
    ),
  );
  for (const block of content.children) finish(block);
  return content;
}

/** The bar above a code block; `code-copy.js` copies. @param {string} language */
function codeBar(language) {
  const button = h("button", {
    type: "button",
    class: "code-copy",
    "aria-label": gettext("Copy code"),
  });
  button.append(icon("copy"), h("span", {}, gettext("Copy")));
  return h("div", { class: "code-bar" }, h("span", {}, language || "text"), button);
}

/**
 * Nothing from other hosts is loaded into the page (its policy forbids it): the picture becomes a
 * link, which the reader may open in a new tab.
 * @param {string} source @param {string} alt
 */
function remoteImage(source, alt) {
  const { host } = new URL(source);
  return h(
    "a",
    {
      class: "remote-image",
      href: source,
      target: "_blank",
      rel: "noopener nofollow noreferrer",
      title: source,
    },
    icon("image"),
    h(
      "span",
      { class: "remote-image-text" },
      alt || gettext("Image"),
      h("small", {}, interpolate(gettext("Open image from %(host)s"), { host })),
    ),
  );
}
