/** Attaches files dropped on a chat or a thread. */

/**
 * @param {HTMLElement} composer shows that a file is dragged over the chat
 * @param {HTMLElement} view the chat or the thread
 * @param {(event: DragEvent) => void} take
 */
export function takeDrops(composer, view, take) {
  view.ondragover = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    composer.classList.add("is-dropping");
  };
  view.ondragleave = (event) => {
    if (!view.contains(/** @type {Node} */ (event.relatedTarget)))
      composer.classList.remove("is-dropping");
  };
  view.ondrop = (event) => {
    composer.classList.remove("is-dropping");
    take(event);
  };
}
