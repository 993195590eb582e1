/** Files attached to the next message: uploaded at once, shown with progress, removable. */

import { isApiError } from "../api.js";
import { api, start } from "../context.js";
import { announce } from "../dom.js";
import { fileSize } from "../text/file-size.js";
import { glyph } from "../view.js";
import { html, nothing, repeat } from "../../vendor/lit/lit.js";
import "../parts/sound-player.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {object} Item
 * @property {number} key
 * @property {File} file
 * @property {string} preview address of the picture in this page, "" for other files
 * @property {string} sound the same for a sound
 * @property {number} percent of the file that was sent
 * @property {import("../../uamp/outbox.js").Attachment|null} stored
 * @property {string} error why it was not uploaded
 * @property {() => void} abort
 */

/**
 * The reason why the server refused a file, for the user.
 * @param {{status: number, message: string}} error
 */
function reason(error) {
  if (error.status === 413)
    return interpolate(gettext("Too large (max. %(size)s)."), {
      size: fileSize(start.upload_bytes),
    });
  return error.status === 0 ? gettext("Couldn't reach the server.") : error.message;
}

/** The name of a file without its extension. @param {File} file */
const nameOf = ({ name }) => name.replace(/\.\w+$/, "");

/** The files of a composer: a reactive controller of Lit. */
export class Attachments {
  /**
   * @param {import("../view.js").View} host
   * @param {(text: string) => void} say
   */
  constructor(host, say) {
    this._host = host;
    this._say = say;
    this._made = 0;
    /** @type {Item[]} */
    this._items = [];
    host.addController(this);
  }

  hostDisconnected() {
    this.clear();
  }

  get isEmpty() {
    return this._items.every((item) => item.error);
  }

  get isBusy() {
    return this._items.some((item) => !item.stored && !item.error);
  }

  /** @param {Iterable<File>} files */
  add(files) {
    for (const file of files) {
      if (file.size > start.upload_bytes)
        this._say(
          interpolate(gettext("%(name)s is too large (max. %(size)s)."), {
            name: file.name,
            size: fileSize(start.upload_bytes),
          }),
        );
      else if (file.size === 0)
        this._say(
          interpolate(gettext("%(name)s is empty. Choose another file."), { name: file.name }),
        );
      else this._upload(file);
    }
  }

  /** @returns {import("../../uamp/outbox.js").Attachment[]} the stored files; none is left */
  take() {
    const stored = this._items.flatMap((item) => item.stored ?? []);
    this.clear();
    return stored;
  }

  clear() {
    for (const item of this._items) this._release(item);
    this._items = [];
    this._host.requestUpdate();
  }

  template() {
    return html`<ul
      class="tray"
      aria-label=${gettext("Attachments")}
      ?hidden=${this._items.length === 0}
    >
      ${repeat(
        this._items,
        ({ key }) => key,
        (item) => this._chip(item),
      )}
    </ul>`;
  }

  /** @param {Item} item */
  _chip(item) {
    return item.sound ? this._sound(item) : this._file(item);
  }

  /** A recording can be played before it is sent. @param {Item} item */
  _sound(item) {
    const { file, sound, error, stored, percent } = item;
    return html`<li
      class="tray-item tray-sound ${error ? "is-failed" : ""}"
      data-testid="attachment"
    >
      <sound-player .src=${sound} .name=${nameOf(file)}></sound-player>
      ${
        error
          ? html`<small>${interpolate(gettext("Upload failed. %(error)s"), { error })}</small>`
          : nothing
      }${
        stored || error
          ? nothing
          : html`<progress
              class="upload"
              max="100"
              value=${percent}
              aria-label=${interpolate(gettext("Uploading %(name)s"), { name: file.name })}
            ></progress>`
      }
      <button
        type="button"
        class="icon-button"
        aria-label=${interpolate(gettext("Remove %(name)s"), { name: file.name })}
        title=${interpolate(gettext("Remove %(name)s"), { name: file.name })}
        @click=${() => this._remove(item)}
      >
        ${glyph("close")}
      </button>
    </li>`;
  }

  /** @param {Item} item */
  _file(item) {
    const { file, preview, percent, stored, error } = item;
    return html`<li class="tray-item ${error ? "is-failed" : ""}" data-testid="attachment">
      ${
        preview
          ? html`<img src=${preview} alt="" @error=${() => this._dropPreview(item)} />`
          : glyph("file")
      }
      <span class="file-text"
        ><span class="file-name">${file.name}</span
        ><small
          >${
            error
              ? interpolate(gettext("Upload failed. %(error)s"), { error })
              : fileSize(file.size)
          }</small
        >
        ${
          stored || error
            ? nothing
            : html`<progress
                class="upload"
                max="100"
                value=${percent}
                aria-label=${interpolate(gettext("Uploading %(name)s"), { name: file.name })}
              ></progress>`
        }</span
      >
      <button
        type="button"
        class="icon-button"
        aria-label=${interpolate(gettext("Remove %(name)s"), { name: file.name })}
        title=${interpolate(gettext("Remove %(name)s"), { name: file.name })}
        @click=${() => this._remove(item)}
      >
        ${glyph("close")}
      </button>
    </li>`;
  }

  /**
   * The file is not the picture that its name claims, or one that this browser cannot draw.
   * @param {Item} item
   */
  _dropPreview(item) {
    URL.revokeObjectURL(item.preview);
    item.preview = "";
    this._host.requestUpdate();
  }

  /**
   * The file is not the sound that its name claims: Go source files have such an extension, too.
   * @param {Item} item
   */
  _dropSound(item) {
    if (item.sound) URL.revokeObjectURL(item.sound);
    item.sound = "";
  }

  /** @param {File} file */
  _upload(file) {
    /** @type {Item} */
    const item = {
      key: (this._made += 1),
      file,
      preview: file.type.startsWith("image/") ? URL.createObjectURL(file) : "",
      sound: file.type.startsWith("audio/") ? URL.createObjectURL(file) : "",
      percent: 0,
      stored: null,
      error: "",
      abort: () => {},
    };
    const { done, abort } = api.upload(file, (fraction) => {
      item.percent = Math.round(100 * fraction);
      this._host.requestUpdate();
    });
    item.abort = abort;
    this._items = [...this._items, item];
    this._host.requestUpdate();
    this._finish(item, done);
  }

  /** @param {Item} item @param {Promise<any>} done */
  async _finish(item, done) {
    const { file } = item;
    try {
      const { content_id, url, filename, mime_type } = await done;
      item.stored = { content_id, url, filename: filename || file.name, mime_type };
      if (!/^(audio|video)\//.test(mime_type)) this._dropSound(item);
      announce(interpolate(gettext("%(name)s is attached."), { name: file.name }));
    } catch (/** @type {any} */ error) {
      if (error.name === "AbortError") return;
      if (!isApiError(error)) throw error;
      item.error = reason(error);
      announce(
        interpolate(gettext("Couldn't upload %(name)s. %(error)s"), {
          name: file.name,
          error: item.error,
        }),
      );
    }
    this._host.requestUpdate();
  }

  /** @param {Item} item */
  _remove(item) {
    this._release(item);
    this._items = this._items.filter((kept) => kept !== item);
    this._host.requestUpdate();
  }

  /** @param {Item} item */
  _release(item) {
    if (!item.stored && !item.error) item.abort();
    for (const url of [item.preview, item.sound]) if (url) URL.revokeObjectURL(url);
  }
}
