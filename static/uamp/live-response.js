/**
 * One running answer, folded from its events: text by offset, thoughts, tools and their progress,
 * in the order in which they came (UAMP §6.6, §6.12, §6.13).
 */

/**
 * @typedef {object} TextPart
 * @property {"text"} kind
 * @property {string} text
 *
 * @typedef {object} ThinkingPart
 * @property {"thinking"} kind
 * @property {string} text
 *
 * @typedef {object} ToolPart
 * @property {"tool"} kind
 * @property {string} id
 * @property {string} name
 * @property {string} arguments JSON
 * @property {string|null} result
 * @property {boolean} isError
 * @property {boolean} done
 * @property {number|null} tookMs how long it took, where the server measured it
 * @property {boolean} stopped whether the answer ended before the tool did
 * @property {object[]} items content that the tool made
 * @property {boolean} asking whether it waits for approval
 * @property {string} said the output of an agent that the tool delegates to
 * @property {{percent?: number, step?: number, total_steps?: number, stage?: string,
 *   message?: string}|null} progress
 *
 * @typedef {object} MediaPart
 * @property {"media"} kind
 * @property {object} item a content item
 *
 * @typedef {TextPart|ThinkingPart|ToolPart|MediaPart} Part
 */

/** @param {string} id @param {string} [name] @returns {ToolPart} */
export function newToolPart(id, name = "") {
  return {
    kind: "tool",
    id,
    name,
    arguments: "",
    result: null,
    isError: false,
    done: false,
    tookMs: null,
    stopped: false,
    asking: false,
    said: "",
    items: [],
    progress: null,
  };
}

/**
 * Why an answer is incomplete, for the user: who stopped it, or the error; "" if unknown.
 * @param {import("./types.js").Frame} event its end
 * @param {string} userId of the person who reads it
 */
export function reasonOf(event, userId) {
  if (event.type === "response.cancelled")
    return (event.user_id === userId ? "you" : event.username) || "";
  const error = event.error || event.response?.error;
  return error?.message || error?.code || "";
}

export class LiveResponse {
  /**
   * @param {string} id
   * @param {{agent?: string, message_id?: string, transport?: string, thread?: string, [more:
   *   string]: any}} [created]
   */
  constructor(id, created = {}) {
    this.id = id;
    this.agent = created.agent || "";
    this.messageId = created.message_id || "";
    /** The transport of its question. */
    this.transport = created.transport || "";
    /** The first message of its thread; "" for an answer in the chat. */
    this.thread = created.thread || "";
    /** @type {"running"|"completed"|"cancelled"|"failed"} */
    this.status = "running";
    /** @type {import("./types.js").ErrorBody|null} */
    this.error = null;
    /** Why it is incomplete, for the user, once it ended. */
    this.reason = "";
    /** The reason for a wait, such as another member's payment, in the server's words. */
    this.waitsFor = "";
    /** The id of the person whom it waits for, if the server sent it. */
    this.waitsForUser = "";
    /** The log position of its end, once it ended. */
    this.seq = 0;
    /** Its usage and cost (UAMP §8.7), once it ended. */
    /** @type {any} */
    this.usage = null;
    /** The content items of the whole answer, once it ended, if it has any. @type {any[]} */
    this.output = [];
    /** @type {Part[]} */
    this.parts = [];
    /** Code points of all text so far: the unit of `offset` (UTF-16 units would differ). */
    this.length = 0;
  }

  get text() {
    return this.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  }

  /** @param {string} callId @returns {ToolPart|undefined} */
  tool(callId) {
    return this.parts.filter((part) => part.kind === "tool").find(({ id }) => id === callId);
  }

  /**
   * Apply a `response.delta`. Known text is ignored; the server fills gaps.
   * @param {import("./types.js").Frame} event
   */
  applyDelta({ delta, offset }) {
    this.waitsFor = "";
    if (delta.type === "text") this._applyText(delta.text || "", offset ?? this.length);
    else if (delta.type === "tool_call") this._applyCall(delta.tool_call);
    else if (delta.type === "tool_result") this._applyResult(delta.tool_result);
    else if (delta.type === "tool_progress") this._applyToolText(delta.tool_progress);
    else if (["image", "video", "file"].includes(delta.type)) {
      this.parts.push({ kind: "media", item: delta });
    }
  }

  /**
   * Apply `thinking`: a delta continues the last thought, anything else replaces it.
   * @param {import("./types.js").Frame} event
   */
  applyThinking({ content, is_delta: isDelta }) {
    const last = this.parts.at(-1);
    if (!isDelta) {
      const first = this.parts.findIndex((part) => part.kind === "thinking");
      this.parts = this.parts.filter((part) => part.kind !== "thinking");
      this.parts.splice(Math.max(first, 0), 0, { kind: "thinking", text: content });
    } else if (last?.kind === "thinking") last.text += content;
    else this.parts.push({ kind: "thinking", text: content });
  }

  /** Apply `progress` of the answer itself. @param {import("./types.js").Frame} event */
  applyStage({ stage, message, user_id: userId }) {
    const isWaiting = stage === "waiting_for_payment";
    this.waitsFor = (isWaiting && message) || "";
    this.waitsForUser = (isWaiting && userId) || "";
  }

  /** Apply `progress` of a tool. @param {import("./types.js").Frame} event */
  applyProgress({ target_id: callId, percent, step, total_steps, stage, message }) {
    const tool = this.tool(callId);
    if (tool) tool.progress = { ...tool.progress, percent, step, total_steps, stage, message };
  }

  /** Apply `tool.call_done`. @param {import("./types.js").Frame} event */
  applyCallDone({ call_id: callId }) {
    const tool = this.tool(callId);
    if (tool) tool.done = true;
  }

  /**
   * Finish with `response.done`, `.cancelled` or `.error`.
   * @param {import("./types.js").Frame} event
   */
  finish(event) {
    this.usage = event.response?.usage || null;
    this.seq = event.seq || 0;
    this.output = event.response?.output || event.partial_output || [];
    if (event.type === "response.error") {
      this.status = "failed";
      this.error = event.error || null;
    } else if (event.type === "response.cancelled") this.status = "cancelled";
    else {
      this.status = event.response?.status || "completed";
      this.error = event.response?.error || null;
    }
    for (const part of this.parts) {
      if (part.kind === "tool")
        Object.assign(part, { done: true, stopped: !part.done, asking: false });
    }
  }

  /** @param {string} text @param {number} offset in code points */
  _applyText(text, offset) {
    if (offset === 0 && this.length > 0) {
      this._replaceText(text);
      return;
    }
    if (offset > this.length) return;
    const known = this.length - offset;
    const points = Array.from(text);
    if (points.length <= known) return;
    this._append(known ? points.slice(known).join("") : text);
    this.length += points.length - known;
  }

  /** @param {string} text */
  _replaceText(text) {
    const before = this.text;
    if (text.startsWith(before)) this._append(text.slice(before.length));
    else {
      // The whole text is known, but not its position between tools: it stays where it ended.
      this.parts = this.parts.filter((part) => part.kind !== "text");
      this._append(text);
    }
    this.length = Array.from(text).length;
  }

  /** @param {string} text */
  _append(text) {
    if (!text) return;
    const last = this.parts.at(-1);
    if (last?.kind === "text") last.text += text;
    else this.parts.push({ kind: "text", text });
  }

  /** @param {string} id @param {string} [name] */
  _toolFor(id, name) {
    let tool = this.tool(id);
    if (!tool) {
      tool = newToolPart(id, name);
      this.parts.push(tool);
    }
    if (name) tool.name = name;
    return tool;
  }

  /** @param {{id: string, name?: string, arguments?: string}} call */
  _applyCall(call) {
    const tool = this._toolFor(call.id, call.name);
    const piece = call.arguments || "";
    // Arguments arrive in pieces, or whole after a reconnect.
    if (piece !== tool.arguments) tool.arguments += piece;
  }

  /** @param {Record<string, any>} result */
  _applyResult(result) {
    const tool = this._toolFor(result.call_id);
    tool.result = result.result ?? "";
    tool.isError = Boolean(result.is_error) || result.status === "error";
    tool.items = result.content_items || [];
    tool.tookMs = result.duration_ms ?? null;
    tool.done = true;
    tool.asking = false;
  }

  /** @param {{call_id: string, text?: string, progress_percent?: number}} progress */
  _applyToolText(progress) {
    const tool = this._toolFor(progress.call_id);
    const percent = progress.progress_percent ?? tool.progress?.percent;
    // A delegated agent sends its answer in pieces; a tool sends its current state.
    if (tool.name === "delegate") tool.said += progress.text || "";
    else if (progress.text || percent !== undefined) {
      tool.progress = {
        ...tool.progress,
        message: progress.text || tool.progress?.message,
        percent,
      };
    }
  }
}
