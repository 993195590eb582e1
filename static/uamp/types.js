/** Types that the modules of the client share. */

/**
 * @typedef {{type: string} & Record<string, any>} Frame one event on the wire (docs/protocol/events.md)
 *
 * @typedef {object} ErrorBody
 * @property {string} [code]
 * @property {string} [message]
 * @property {Record<string, any>} [details]
 *
 * @typedef {object} StoredMessage a message as the log has it
 * @property {string} [id]
 * @property {string} role
 * @property {string} sender_id
 * @property {string} content
 * @property {string} [client_event_id]
 * @property {number} [seq]
 */

export {};
