/** Examples of one protocol in several languages. Without scripts they stand one below the other. */

import { copyButton } from "../chat/copy-button.js";
import { tabsOf } from "../chat/tabs.js";
import { gettext } from "../chat/words.js";

/** The language that was chosen last is the one of all protocols that have it. */
const chosen = new EventTarget();

class CodeExamples extends HTMLElement {
  connectedCallback() {
    const figures = [...this.querySelectorAll("figure")];
    const choices = figures.map((panel) => ({ name: panel.dataset.language, panel }));
    const { list, show } = tabsOf(gettext("Language"), choices, (name) => {
      chosen.dispatchEvent(new CustomEvent("language", { detail: name }));
    });
    chosen.addEventListener("language", ({ detail }) => {
      if (choices.some(({ name }) => name === detail)) show(detail);
    });
    for (const figure of figures) {
      figure.querySelector("figcaption").className = "visually-hidden";
      const copy = copyButton(gettext("Copy"), () => figure.querySelector("pre").textContent, document.getElementById("announcer"));
      if (copy) figure.append(copy);
    }
    this.prepend(list);
  }
}
customElements.define("code-examples", CodeExamples);
