/** Tabs as the ARIA Authoring Practices describe them: arrows move, the chosen one is in the tab order. */

import { h } from "./dom.js";

let made = 0;

/**
 * @param {string} label what the tabs choose
 * @param {{name: string, panel: HTMLElement}[]} choices
 * @param {(name: string) => void} [onChoice] a person chose one
 * @returns {{list: HTMLElement, show: (name: string) => void}} the tabs, and a function that opens one
 */
export function tabsOf(label, choices, onChoice = () => {}) {
  made += 1;
  const tabs = choices.map(({ name, panel }, at) => {
    panel.id ||= `tab-panel-${made}-${at}`;
    const id = `tab-${made}-${at}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
    return h("button", {
      type: "button", role: "tab", class: "tab", id, "aria-controls": panel.id, onclick: () => choose(name),
    }, name);
  });
  function show(name) {
    choices.forEach((choice, at) => {
      const isChosen = choice.name === name;
      choice.panel.hidden = !isChosen;
      tabs[at].setAttribute("aria-selected", String(isChosen));
      tabs[at].tabIndex = isChosen ? 0 : -1;
    });
  }
  function choose(name) {
    show(name);
    onChoice(name);
  }
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": label }, tabs);
  list.addEventListener("keydown", (e) => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (at === -1 || to === undefined) return;
    e.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    choose(choices[next].name);
    tabs[next].focus();
  });
  show(choices[0].name);
  return { list, show };
}
