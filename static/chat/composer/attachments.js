/** Files that go with the next message: uploaded at once, shown with progress, removable. */

import { api, start } from "../context.js";
import { announce, h, icon, iconButton } from "../dom.js";
import { fileSize } from "../file-size.js";

/** What the server says about a file that it refused, for people. */
function reason(error) {
  if (error.status === 413) return `It is larger than ${fileSize(start.upload_bytes)}.`;
  return error.status === 0 ? "The server was not reached." : error.message;
}

export class AttachmentTray {
  /** @param {() => void} changed @param {(text: string) => void} say */
  constructor(changed, say) {
    this.element = h("ul", { class: "tray", "aria-label": "Attachments", hidden: true });
    this._changed = changed;
    this._say = say;
    /** @type {{file: File, chip: HTMLElement, stored: object|null, failed: boolean, preview: string,
     *   abort: () => void}[]} */
    this._items = [];
  }

  get isEmpty() {
    return this._items.every((item) => item.failed);
  }

  get isBusy() {
    return this._items.some((item) => !item.stored && !item.failed);
  }

  /** @param {Iterable<File>} files */
  add(files) {
    for (const file of files) {
      if (file.size > start.upload_bytes) {
        this._say(`${file.name} is larger than ${fileSize(start.upload_bytes)}.`);
      } else if (file.size === 0) this._say(`${file.name} is empty.`);
      else this._upload(file);
    }
    this._show();
  }

  /** @returns {import("../../uamp/outbox.js").Attachment[]} what is stored; the tray is empty then */
  take() {
    const stored = this._items.filter((item) => item.stored).map((item) => item.stored);
    this.clear();
    return stored;
  }

  clear() {
    for (const item of this._items) this._release(item);
    this._items = [];
    this._show();
  }

  _upload(file) {
    const isImage = file.type.startsWith("image/");
    const preview = isImage ? URL.createObjectURL(file) : "";
    const item = { file, stored: null, failed: false, preview };
    const fill = h("div", { class: "progress-fill" });
    const bar = h("div", {
      class: "progress", role: "progressbar", "aria-label": `Uploading ${file.name}`,
      "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0,
    }, fill);
    const note = h("small", {}, fileSize(file.size));
    item.chip = h(
      "li", { class: "tray-item", "data-testid": "attachment" },
      isImage ? h("img", { src: preview, alt: "" }) : icon("file"),
      h("span", { class: "file-text" }, h("span", { class: "file-name" }, file.name), note, bar),
      iconButton("close", `Remove ${file.name}`, { onclick: () => this._remove(item) }),
    );
    const { done, abort } = api.upload(file, (fraction) => {
      fill.style.width = `${100 * fraction}%`;
      bar.setAttribute("aria-valuenow", String(Math.round(100 * fraction)));
    });
    item.abort = abort;
    this._items.push(item);
    this.element.append(item.chip);
    this._finish(item, done, bar, note);
  }

  async _finish(item, done, bar, note) {
    try {
      const stored = await done;
      item.stored = {
        content_id: stored.content_id, url: stored.url, filename: stored.filename || item.file.name,
        mime_type: stored.mime_type,
      };
      announce(`${item.file.name} is attached.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.name !== "ApiError") throw error;
      item.failed = true;
      item.chip.classList.add("is-failed");
      note.textContent = `Not uploaded. ${reason(error)}`;
      announce(`${item.file.name} was not uploaded. ${reason(error)}`);
    }
    bar.remove();
    this._changed();
  }

  _remove(item) {
    this._release(item);
    this._items = this._items.filter((kept) => kept !== item);
    this._show();
  }

  _release(item) {
    if (!item.stored && !item.failed) item.abort();
    if (item.preview) URL.revokeObjectURL(item.preview);
    item.chip.remove();
  }

  _show() {
    this.element.hidden = this._items.length === 0;
    this._changed();
  }
}
