/** Pictures and files of a message, as they are shown. */

import { h, icon } from "./dom.js";

/** Where a medium of a content item is served (UAMP §8.4.1), or "" when it is not by us. */
function urlOf(item) {
  const medium = item[item.type];
  const url = typeof medium === "string" ? "" : medium?.url || "";
  return /^\/api\/content\/[0-9a-f-]{36}$/i.test(url) ? url : "";
}

/** A picture inline, anything else as a chip to download. */
export function media(item) {
  const url = urlOf(item);
  const name = item.filename || item.alt_text || item.description || `${item.type}`;
  if (item.type === "image" && url) {
    const image = h("img", { src: url, alt: item.alt_text || item.description || "", loading: "lazy" });
    return h("a", { class: "media-image", href: url, target: "_blank", "aria-label": `Open ${name}` }, image);
  }
  const kind = item.mime_type || item.format || item.type;
  const size = item.size_bytes ? ` · ${fileSize(item.size_bytes)}` : "";
  const text = h("span", { class: "file-text" }, h("span", { class: "file-name" }, name), h("small", {}, kind + size));
  return url
    ? h("a", { class: "file-chip", href: url, download: name }, icon("file"), text)
    : h("span", { class: "file-chip" }, icon("file"), text);
}

/** @param {number} bytes */
export function fileSize(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
