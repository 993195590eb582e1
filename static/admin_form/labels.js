/** Labels and keyboard access that Django's own forms lack. */

addEventListener("load", () => {
  // The help icon of a multiple choice is a picture: its label needs a role.
  for (const sign of document.querySelectorAll(".help-tooltip[aria-label]"))
    sign.setAttribute("role", "img");
  // Inline tables wider than the screen must be scrollable with the arrow keys, too.
  for (const group of document.querySelectorAll(".inline-group"))
    if (group instanceof HTMLElement && group.scrollWidth > group.clientWidth) group.tabIndex = 0;
  const list = document.querySelector("#result_list");
  if (list instanceof HTMLTableElement) labelCells(list);
});

/**
 * Label each cell with its column, which phones show beside it. The roles keep it a table for
 * screen readers even when the styles turn its rows into cards.
 *
 * @param {HTMLTableElement} list
 */
function labelCells(list) {
  const names = [...list.querySelectorAll("thead th")].map(
    (head) =>
      head.querySelector(".text a, .text > span:not(:has(input))")?.textContent?.trim() ?? "",
  );
  list.setAttribute("role", "table");
  for (const part of list.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
  for (const head of list.querySelectorAll("thead th")) head.setAttribute("role", "columnheader");
  for (const row of list.rows) {
    row.setAttribute("role", "row");
    if (
      row.parentElement instanceof HTMLTableSectionElement &&
      row.parentElement.tagName === "TBODY"
    )
      nameCells(row, names);
  }
  list.classList.add("labelled");
}

/**
 * @param {HTMLTableRowElement} row
 * @param {string[]} names
 */
function nameCells(row, names) {
  [...row.cells].forEach((cell, place) => {
    cell.dataset.label = names[place] ?? "";
    cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  });
}
