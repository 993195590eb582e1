/** Types shared by the modules of the client. */

/**
 * @typedef {{type: string} & Record<string, any>} Frame one event on the wire
 *   (docs/protocol/events.md)
 *
 * @typedef {object} ErrorBody
 * @property {string} [code]
 * @property {string} [message]
 * @property {Record<string, any>} [details]
 *
 * @typedef {object} StoredMessage a message in the log
 * @property {string} [id]
 * @property {string} role
 * @property {string} sender_id
 * @property {string} content
 * @property {string} [client_event_id]
 * @property {number} [seq]
 */

/** Types for signatures (docs/signatures.md). */
/**
 * @typedef {"valid"|"rotated"|"changed"|"unsigned"|"unknown_key"|"erased"|"unsupported"}
 *   SignatureState
 * @typedef {"same"|"changed"|"edited"|"erased"|"absent"} RequestState
 *
 * @typedef {object} SignedMessage a message of REST, an export or `message.created`
 * @property {string} id
 * @property {string} [role]
 * @property {string} [name] of its sender
 * @property {string|null} [content]
 * @property {any[]|null} [content_items]
 * @property {string|null} [response_id]
 * @property {string|null} [status] of an incomplete answer: cancelled or failed
 * @property {string|null} [signature]
 * @property {string|null} [stored_output_hash] the `output_hash` of the stored response, which
 *   other protocols read
 * @property {string|null} [stored_usage_hash] the `usage_hash` of the stored response
 * @property {unknown} [deleted_at]
 * @property {unknown} [edited_at]
 * @property {string|null} [salt] which `request_hash` covers
 *
 * @typedef {object} HashedQuestion a question without its text
 * @property {string} id
 * @property {(string|null)[]} hashes of the forms that a `request_hash` may cover
 * @property {boolean} isErased
 * @property {boolean} isEdited
 *
 * @typedef {object} Claims what the agent signed
 * @property {string} iss
 * @property {string} sub
 * @property {string} agent
 * @property {string} chat_id
 * @property {string} jti
 * @property {number} iat
 * @property {string} response_hash
 * @property {string} output_hash
 * @property {string} request_hash
 * @property {string} [message_id]
 * @property {string} [request_id]
 * @property {{amount: string, currency: string, transfer_id?: string}} [price]
 * @property {string} [status] of an incomplete answer that was paid: cancelled or failed
 * @property {string} [digital_source_type] that AI made it
 * @property {string[]} [models] that were asked
 * @property {string} [usage_hash] of its tokens and cost; signatures of earlier servers have none
 *
 * @typedef {object} Verdict
 * @property {SignatureState} state `unsupported` where this browser does not know the algorithm
 * @property {RequestState} request
 * @property {Claims} [claims] once they are verified
 * @property {string} [kid]
 * @property {"response"|"usage"} [part] the changed part, if not the message itself: the stored
 *   response, or its usage
 *
 * @typedef {object} SignedReceipt a receipt of REST or of an export
 * @property {string} [response_id]
 * @property {string} [document]
 * @property {string[]} transfers
 *
 * @typedef {{iss: string, sub: string, iat: number, chat_id: string, response_id: string,
 *   message_id?: string, answer_hash?: string, transfers?: string[], [member: string]: unknown}}
 *   ReceiptClaims
 *
 * @typedef {object} ReceiptVerdict
 * @property {SignatureState} state
 * @property {{amount: string, currency: string}} [price] what the agent signed, if the receipt has
 *   a different one
 * @property {ReceiptClaims} [claims] once they are verified
 * @property {string} [kid]
 *
 * @typedef {JsonWebKey & {kid?: string, iat?: number, exp?: number, uamp_owner?: string}}
 *   PublishedKey
 */

export {};
