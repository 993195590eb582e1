/** Pictures and files of a message, as they are shown. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { fileSize } from "../file-size.js";
import { previewOf } from "./preview.js";
import "./sound-player.js";
import { gettext } from "../words.js";

/** Where a medium of a content item is served (UAMP §8.4.1), or "" when it is not by us. */
function urlOf(item) {
  const medium = item[item.type];
  const url = typeof medium === "string" ? "" : medium?.url || "";
  return /^\/api\/content\/[0-9a-f-]{36}$/i.test(url) ? url : "";
}

/** A plain click opens the viewer; one for a new tab or a download stays what it is. Fires (bubbling) `view-media`. */
function view(event, medium) {
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  event.currentTarget.dispatchEvent(new CustomEvent("view-media", { bubbles: true, detail: medium }));
}

/** A picture inline, sound and film with a player, anything else as a chip to look into or to download. */
export function media(item) {
  const url = urlOf(item);
  const name = item.filename || item.alt_text || item.description || `${item.type}`;
  // A drawing can run scripts: it is served as a download, and shown as its source.
  const isDrawing = /\bsvg/i.test(`${item.format || ""} ${item.mime_type || ""} ${name}`);
  if (item.type === "image" && url && !isDrawing) {
    const alt = item.alt_text || item.description || "";
    return html`<a class="media-image" href=${url} target="_blank" aria-label="Open ${name}" data-name=${name}
      @click=${(event) => view(event, { kind: "image", url, name })}><img src=${url} alt=${alt} loading="lazy"></a>`;
  }
  if (item.type === "audio" && url) return html`<sound-player .src=${url} .name=${name === "audio" ? gettext("Voice note") : name}></sound-player>`;
  if (item.type === "video" && url) {
    return html`<video class="media-video" src=${url} controls preload="metadata" playsinline aria-label=${name}></video>`;
  }
  return file(item, url, name);
}

function file(item, url, name) {
  const mime = item.mime_type || "";
  const size = item.size_bytes ? ` · ${fileSize(item.size_bytes)}` : "";
  const inside = html`${glyph("file")}<span class="file-text"><bdi class="file-name">${name}</bdi><small>${mime || item.format || item.type}${size}</small></span>`;
  if (!url) return html`<span class="file-chip">${inside}</span>`;
  const kind = previewOf(name, mime) || (item.type === "image" ? "text" : "");
  if (!kind) return html`<a class="file-chip" href=${url} download=${name}>${inside}</a>`;
  return html`<a class="file-chip" href=${url} target="_blank" aria-label="Preview ${name}" data-testid="file-preview"
    @click=${(event) => view(event, { kind, url, name })}>${inside}</a>`;
}
