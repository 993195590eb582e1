/** Renders the pictures and files of a message. */

import { glyph } from "../view.js";
import { html } from "../../vendor/lit/lit.js";
import { fileSize } from "../text/file-size.js";
import { start } from "../context.js";
import { previewOf } from "./preview.js";
import { view } from "./picture-preview.js";
import "./sound-player.js";
import "./sound-transcript.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {Record<string, unknown> & {type: string, content_id?: string, filename?: string,
 *   alt_text?: string, description?: string, mime_type?: string, format?: string, size_bytes?:
 *   number}} ContentItem a part of a message other than its text (UAMP §8.4)
 */

/**
 * The address of a content item's medium (UAMP §8.4.1), or "" if it is not on this server.
 * @param {ContentItem} item
 */
function urlOf(item) {
  const medium = /** @type {string|{url?: string}|undefined} */ (item[item.type]);
  const url = typeof medium === "string" ? "" : medium?.url || "";
  return /^\/api\/content\/[0-9a-f-]{36}$/i.test(url) ? url : "";
}

/**
 * Renders a picture inline, sound and film with a player, anything else as a chip to open or
 * download.
 * @param {ContentItem} item
 */
export function media(item) {
  const url = urlOf(item);
  const name = item.filename || item.alt_text || item.description || `${item.type}`;
  // A drawing can run scripts: it is served as a download, and shown as its source.
  const isDrawing = /\bsvg/i.test(`${item.format || ""} ${item.mime_type || ""} ${name}`);
  if (item.type === "image" && url && !isDrawing) {
    const alt = item.alt_text || item.description || "";
    return html`<a
      class="media-image"
      href=${url}
      target="_blank"
      aria-label=${interpolate(gettext("Open %(name)s"), { name })}
      data-name=${name}
      @click=${(/** @type {MouseEvent} */ event) => view(event, { kind: "image", url, name })}
      ><img src=${url} alt=${alt} loading="lazy"
    /></a>`;
  }
  if (item.type === "audio" && url)
    return html`<sound-player
        .src=${url}
        .name=${name === "audio" ? gettext("Voice note") : name}
      ></sound-player
      >${start.transcripts ? html`<sound-transcript .src=${url}></sound-transcript>` : ""}`;
  if (item.type === "video" && url) {
    return html`<video
      class="media-video"
      src=${url}
      controls
      preload="metadata"
      playsinline
      aria-label=${name}
    ></video>`;
  }
  return file(item, url, name);
}

/** The type of a file as people know it: "CSV", "PDF". @param {string} name @param {string} mime */
const typeOf = (name, mime) =>
  (
    /\.([a-z0-9]{1,5})$/i.exec(name)?.[1] ?? /^[a-z]+\/([a-z0-9]{1,5})$/.exec(mime)?.[1]
  )?.toUpperCase() ?? gettext("File");

/** @param {ContentItem} item @param {string} url @param {string} name */
function file(item, url, name) {
  const chip = fileChip(item, url, name);
  if (!url || !start.previews.includes(item.mime_type || "")) return chip;
  return html`<picture-preview .src=${url} .name=${name} .chip=${chip}></picture-preview>`;
}

/** @param {ContentItem} item @param {string} url @param {string} name */
function fileChip(item, url, name) {
  const mime = item.mime_type || "";
  const size = item.size_bytes ? ` · ${fileSize(item.size_bytes)}` : "";
  const kind = previewOf(name, mime) || (item.type === "image" ? "text" : "");
  // A picture type that not every browser, nor the server, can draw.
  const hint = url && !kind && mime.startsWith("image/") ? ` · ${gettext("Download to view")}` : "";
  const inside = html`${glyph("file")}<span class="file-text"
      ><bdi class="file-name">${name}</bdi><small>${typeOf(name, mime)}${size}${hint}</small></span
    >`;
  if (!url) return html`<span class="file-chip">${inside}</span>`;
  if (!kind) return html`<a class="file-chip" href=${url} download=${name}>${inside}</a>`;
  return html`<a
    class="file-chip"
    href=${url}
    target="_blank"
    aria-label=${interpolate(gettext("Preview %(name)s"), { name })}
    data-testid="file-preview"
    @click=${(/** @type {MouseEvent} */ event) => view(event, { kind, url, name })}
    >${inside}</a
  >`;
}
