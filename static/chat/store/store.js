/**
 * The state of a page in one place: events are actions, reducers compute the next state, and each
 * view renders the part that it selects. Knows no DOM.
 */

/**
 * @template S
 * @typedef {Record<string, (state: S, action: any) => S>} Reducers by type of action
 */

/** @template S */
export class Store {
  /** @param {S} state @param {Reducers<S>} reducers */
  constructor(state, reducers) {
    this._state = state;
    this._reducers = reducers;
    /** @type {Set<() => void>} */
    this._listeners = new Set();
  }

  /** @returns {S} never changed in place: identical objects are unchanged */
  get state() {
    return this._state;
  }

  /** @param {{type: string} & Record<string, any>} action */
  dispatch(action) {
    const reducer = this._reducers[action.type];
    if (!reducer) throw new TypeError(`There is no reducer for ${action.type}.`);
    const next = reducer(this._state, action);
    if (next === this._state) return;
    this._state = next;
    for (const listener of this._listeners) listener();
  }

  /** @param {() => void} listener called after each change @returns {() => void} unsubscribes */
  subscribe(listener) {
    this._listeners.add(listener);
    return () => this._listeners.delete(listener);
  }
}

/**
 * Keeps a view up to date: a Lit controller that requests an update when the selected part of the
 * state is a different object.
 * @template S, V
 */
export class Selected {
  /**
   * @param {{addController: (controller: any) => void, requestUpdate: () => void}} host
   * @param {Store<S>|((host: any) => Store<S>)} store or a function that finds it once the host is
   *   connected
   * @param {(state: S) => V} select
   */
  constructor(host, store, select) {
    this._host = host;
    this._find = typeof store === "function" ? store : () => store;
    this._select = select;
    this._store = this._find(host);
    this.value = select(this._store.state);
    host.addController(this);
  }

  hostConnected() {
    this._store = this._find(this._host);
    this._end = this._store.subscribe(() => this._look());
    this._look();
  }

  hostDisconnected() {
    this._end?.();
  }

  _look() {
    const value = this._select(this._store.state);
    if (value === this.value) return;
    this.value = value;
    this._host.requestUpdate();
  }
}
