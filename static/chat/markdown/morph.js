/**
 * Makes nodes of the page equal to others: equal nodes stay in place, with any selection in them.
 */

/** @param {Element} old @param {Element} fresh */
function copyAttributes(old, fresh) {
  for (const { name } of Array.from(old.attributes))
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of Array.from(fresh.attributes))
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

/** @param {Text} old @param {string} text */
function copyText(old, text) {
  if (text.startsWith(old.data)) old.appendData(text.slice(old.data.length));
  else old.data = text;
}

/**
 * @param {Node} place
 * @param {Node} fresh whose children are taken
 * @param {number} [from] which child of the place becomes the first of them
 */
export function morph(place, fresh, from = 0) {
  const olds = Array.from(place.childNodes).slice(from);
  const news = Array.from(fresh.childNodes);
  news.forEach((node, at) => {
    const old = olds[at];
    if (!old) place.appendChild(node);
    else if (old.isEqualNode(node)) return;
    else if (old instanceof Text && node instanceof Text) copyText(old, node.data);
    else if (
      old instanceof HTMLElement &&
      node instanceof HTMLElement &&
      old.localName === node.localName
    ) {
      copyAttributes(old, node);
      morph(old, node);
    } else old.replaceWith(node);
  });
  for (const old of olds.slice(news.length)) old.remove();
}
