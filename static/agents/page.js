/**
 * The page of an agent: one tab for people, and one for developers with tabbed examples and copy
 * buttons.
 */

import "./code-examples.js";
import "./directory.js";
import "../chat/controls/tabs.js";
import { gettext } from "../chat/words.js";
import { html, render } from "../vendor/lit/lit.js";

const halves = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll("[data-half]")));
const list = document.getElementById("agent-tabs");

/** @param {string} name */
function show(name) {
  for (const half of halves) half.hidden = half.dataset.half !== name;
  const tabs = halves.map(({ dataset, id }) => ({ name: dataset.half ?? "", panel: id }));
  const choose = (/** @type {CustomEvent<string>} */ { detail }) => show(detail);
  if (list)
    render(
      html`<tab-list
        .label=${gettext("About the agent")}
        .tabs=${tabs}
        .chosen=${name}
        @choose-tab=${choose}
      ></tab-list>`,
      list,
    );
}

for (const half of halves) {
  half.setAttribute("role", "tabpanel");
  half.setAttribute("aria-labelledby", `tab-${half.id}`);
}
show((location.hash === "#developers" ? halves.at(-1) : halves[0])?.dataset.half ?? "");
