/** What Django's own forms leave without a name, or out of the reach of keys. */

addEventListener("load", () => {
  // A sign in the choice of many has a name: it is a picture.
  for (const sign of document.querySelectorAll(".help-tooltip[aria-label]")) sign.setAttribute("role", "img");
  // A table of rows that is wider than the screen is scrolled with the arrow keys, too.
  for (const group of document.querySelectorAll(".inline-group")) if (group instanceof HTMLElement && group.scrollWidth > group.clientWidth) group.tabIndex = 0;
});
