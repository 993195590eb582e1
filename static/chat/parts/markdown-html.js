/**
 * HTML that the server rendered and sanitised (`chat_app/markdown.py`), made usable: code blocks get
 * a bar with language and copy button, images of other hosts a link that says where they are.
 */

import { copyText } from "../clipboard.js";
import { announce, h, icon } from "../dom.js";

const CONFIRM_MS = 1_600;

/**
 * Turn sanitised HTML into nodes.
 * @param {string} html from this server's renderer, nothing else
 * @returns {DocumentFragment}
 */
export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return prepared(template.content);
}

/** @param {DocumentFragment} content sanitised */
export function prepared(content) {
  // Each block is written in its own direction: a message may have several languages.
  for (const block of content.children) block.dir = "auto";
  for (const block of content.querySelectorAll(".code-block")) {
    block.prepend(codeBar(block.dataset.language || "", () => block.querySelector("code").textContent));
    block.querySelector("pre").tabIndex = 0;
  }
  for (const table of content.querySelectorAll(".table-scroll")) table.tabIndex = 0;
  for (const image of content.querySelectorAll(".remote-image")) {
    // An address that no browser can read stays the description that it is.
    if (URL.canParse(image.dataset.src)) {
      image.replaceWith(remoteImage(image.dataset.src, image.dataset.alt));
    }
  }
  return content;
}

/** @param {string} language @param {() => string} code */
export function codeBar(language, code) {
  const label = h("span", {}, "Copy");
  const button = h("button", { type: "button", class: "code-copy", "aria-label": "Copy code" });
  button.append(icon("copy"), label);
  button.addEventListener("click", async () => {
    const copied = await copyText(code());
    label.textContent = copied ? "Copied" : "Press Ctrl+C";
    announce(copied ? "Code copied." : "Copying is blocked: select the code and press Ctrl+C.");
    setTimeout(() => {
      label.textContent = "Copy";
    }, CONFIRM_MS);
  });
  return h("div", { class: "code-bar" }, h("span", {}, language || "text"), button);
}

/**
 * Nothing of another host is loaded into the page (its policy forbids it): looking at the picture
 * is a visit, in a tab of its own, that the reader decides on.
 */
function remoteImage(source, alt) {
  const { host } = new URL(source);
  return h(
    "a",
    {
      class: "remote-image", href: source, target: "_blank", rel: "noopener nofollow noreferrer",
      title: source,
    },
    icon("image"),
    h("span", { class: "remote-image-text" }, alt || "Image", h("small", {}, `Open image from ${host}`)),
  );
}
