/**
 * The state shared by the clients and agents of a chat (`state.updated`), kept up to date by
 * patches. Knows no DOM.
 */

/** @param {string} path of RFC 6901 @returns {string[]} */
const keysOf = (path) =>
  path
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));

/**
 * Apply one operation of JSON Patch to a copy of a value. The server sends `add`, `replace` and
 * `remove`, with paths that exist in the value.
 * @param {any} value
 * @param {string[]} keys
 * @param {{op: string, value?: any}} operation
 * @returns {any}
 */
function changed(value, [key, ...rest], operation) {
  if (key === undefined) return operation.op === "remove" ? null : operation.value;
  if (Array.isArray(value)) {
    const at = key === "-" ? value.length : Number(key);
    if (rest.length) return value.with(at, changed(value[at], rest, operation));
    if (operation.op === "add") return value.toSpliced(at, 0, operation.value);
    return operation.op === "remove" ? value.toSpliced(at, 1) : value.with(at, operation.value);
  }
  if (!rest.length && operation.op === "remove")
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  // A member called __proto__ is a member like any other.
  return Object.fromEntries([
    ...Object.entries(value),
    [key, changed(value[key], rest, operation)],
  ]);
}

export class SharedState {
  constructor() {
    /** @type {Record<string, any>} */
    this.value = {};
    this.version = 0;
    /** The agent that changed it last; "" for a client, or when unknown. */
    this.by = "";
  }

  /**
   * Take the whole state from `session.created`; without one it is empty.
   * @param {Record<string, any>} event
   */
  take({ state, state_version: version }) {
    this.value = state || {};
    this.version = version || 0;
    this.by = "";
  }

  /**
   * Apply `state.updated`; patches already applied are ignored.
   * @param {Record<string, any>} event
   * @returns {boolean} whether the state changed
   */
  apply({ version, patch, agent }) {
    if (version !== this.version + 1) return false;
    for (const operation of patch)
      this.value = changed(this.value, keysOf(operation.path), operation);
    this.version = version;
    this.by = agent || "";
    return true;
  }
}
