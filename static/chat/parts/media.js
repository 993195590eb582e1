/** Pictures and files of a message, as they are shown. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { fileSize } from "../file-size.js";

/** Where a medium of a content item is served (UAMP §8.4.1), or "" when it is not by us. */
function urlOf(item) {
  const medium = item[item.type];
  const url = typeof medium === "string" ? "" : medium?.url || "";
  return /^\/api\/content\/[0-9a-f-]{36}$/i.test(url) ? url : "";
}

/** A picture inline, sound with a player, anything else as a chip to download. */
export function media(item) {
  const url = urlOf(item);
  const name = item.filename || item.alt_text || item.description || `${item.type}`;
  if (item.type === "image" && url) {
    return html`<a class="media-image" href=${url} target="_blank" aria-label="Open ${name}"><img src=${url} alt=${item.alt_text || item.description || ""} loading="lazy"></a>`;
  }
  if (item.type === "audio" && url) {
    return html`<audio class="media-audio" src=${url} controls preload="none" aria-label=${name}></audio>`;
  }
  const size = item.size_bytes ? ` · ${fileSize(item.size_bytes)}` : "";
  const inside = html`${glyph("file")}<span class="file-text"><span class="file-name">${name}</span><small>${item.mime_type || item.format || item.type}${size}</small></span>`;
  return url ? html`<a class="file-chip" href=${url} download=${name}>${inside}</a>` : html`<span class="file-chip">${inside}</span>`;
}
