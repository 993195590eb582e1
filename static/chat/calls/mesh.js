/**
 * The WebRTC connections of one call, from this browser to each other participant's. If two
 * browsers offer at once, the one with the smaller user id yields ("perfect negotiation"). Knows no
 * document.
 */

/** When to resend an unanswered offer: it may have been lost, or ignored as the polite side's. */
const OFFER_AGAIN_MS = 4_000;
/** How many early signals to keep per participant whom the server has not named yet. */
const EARLY = 64;

/** One connection. */
class Peer {
  /**
   * @param {string} userId of the other participant
   * @param {number} joinedAt when they joined: differs between clients of the same person
   * @param {Mesh} mesh
   */
  constructor(userId, joinedAt, mesh) {
    this.userId = userId;
    this.joinedAt = joinedAt;
    this.stream = new MediaStream();
    this._mesh = mesh;
    this._isPolite = Number(mesh.userId) < Number(userId);
    this._isOffering = false;
    this._ignores = false;
    this._timer = 0;
    /**
     * Candidates that arrived before their description.
     * @type {RTCIceCandidateInit[]}
     */
    this._candidates = [];
    /**
     * Resolves when the last signal is handled: signals are handled in order.
     * @type {Promise<void>}
     */
    this._last = Promise.resolve();
    this.connection = new RTCPeerConnection({ iceServers: mesh.servers });
    this._listen();
    /** The voices of the other participant's agents. */
    this.agents = new MediaStream();
    // Both sides send the microphone first and the agents' sound second, so that each knows which
    // track it receives.
    this.microphone = this.connection.addTrack(mesh.stream.getAudioTracks()[0], mesh.stream);
    if (mesh.agents) this.addAgents(mesh.agents);
  }

  get state() {
    return this.connection.connectionState;
  }

  _listen() {
    const { connection } = this;
    connection.onnegotiationneeded = async () => {
      this._isOffering = true;
      try {
        await connection.setLocalDescription();
        this._offer();
      } catch (error) {
        // The connection was closed meanwhile.
        if (connection.signalingState !== "closed") throw error;
      } finally {
        this._isOffering = false;
      }
    };
    connection.onicecandidate = ({ candidate }) => {
      if (candidate) this._send({ candidate: candidate.toJSON() });
    };
    connection.ontrack = ({ track, transceiver }) => {
      const isMicrophone = transceiver === connection.getTransceivers()[0];
      (isMicrophone ? this.stream : this.agents).addTrack(track);
      this._mesh.emit(isMicrophone ? "stream" : "agents", this);
    };
    connection.onconnectionstatechange = () => {
      if (connection.connectionState === "failed") connection.restartIce();
      this._mesh.emit("change", this);
    };
  }

  /** Send the voices of this participant's agents, too. @param {MediaStream} stream */
  addAgents(stream) {
    this.connection.addTrack(stream.getAudioTracks()[0], stream);
  }

  /** Send the offer until the other side has answered it or made its own. */
  _offer() {
    clearTimeout(this._timer);
    this._send({ sdp: this.connection.localDescription });
    this._timer = window.setTimeout(() => {
      if (this.connection.signalingState === "have-local-offer") this._offer();
    }, OFFER_AGAIN_MS);
  }

  /** @param {object} fields */
  _send(fields) {
    this._mesh.send(this.userId, fields);
  }

  /** @param {any} signal */
  take(signal) {
    this._last = this._last
      .then(() => this._take(signal))
      .catch((error) => {
        if (this.connection.signalingState !== "closed")
          console.warn("A signal of the call was not taken.", error);
      });
  }

  /** @param {any} signal */
  async _take({ sdp, candidate }) {
    const { connection } = this;
    if (connection.signalingState === "closed") return;
    if (sdp) {
      const collides =
        sdp.type === "offer" && (this._isOffering || connection.signalingState !== "stable");
      this._ignores = collides && !this._isPolite;
      if (this._ignores) return;
      // This answers a resent offer.
      if (sdp.type === "answer" && connection.signalingState === "stable") return;
      await connection.setRemoteDescription(sdp);
      for (const early of this._candidates.splice(0)) await connection.addIceCandidate(early);
      if (sdp.type !== "offer") return;
      await connection.setLocalDescription();
      this._send({ sdp: connection.localDescription });
    } else if (candidate && !connection.remoteDescription) {
      if (this._candidates.length < EARLY) this._candidates.push(candidate);
    } else if (candidate && !this._ignores) await connection.addIceCandidate(candidate);
  }

  close() {
    clearTimeout(this._timer);
    this.connection.onconnectionstatechange = null;
    this.connection.close();
  }
}

/**
 * Events: `stream` (a Peer has sound now), `agents` (its agents have), `change` (the state of a
 * Peer changed), `gone` (a Peer is closed).
 */
export class Mesh extends EventTarget {
  /**
   * @param {{userId: string, servers: RTCIceServer[], stream: MediaStream, send: (to: string,
   *   fields: object) => void}} options
   */
  constructor({ userId, servers, stream, send }) {
    super();
    this.userId = userId;
    this.servers = servers;
    this.stream = stream;
    /** The voices of this participant's agents, once there are any. @type {MediaStream|null} */
    this.agents = null;
    this.send = send;
    /** @type {Map<string, Peer>} by user id */
    this.peers = new Map();
    /**
     * Signals from participants whom no update has named so far, by user id.
     * @type {Map<string, any[]>}
     */
    this._early = new Map();
  }

  /**
   * Connect to the current participants, and to no one else.
   * @param {{user_id: string, joined_at: number}[]} others
   */
  update(others) {
    const there = new Map(others.map((member) => [member.user_id, member.joined_at]));
    for (const peer of [...this.peers.values()])
      if (there.get(peer.userId) !== peer.joinedAt) this._drop(peer);
    for (const [userId, joinedAt] of there) {
      if (this.peers.has(userId)) continue;
      const peer = new Peer(userId, joinedAt, this);
      this.peers.set(userId, peer);
      for (const signal of this._early.get(userId) ?? []) peer.take(signal);
    }
    this._early.clear();
  }

  /**
   * Take a signal. A new participant may be faster than the update that names them.
   * @param {{from: string}} signal
   */
  receive(signal) {
    const peer = this.peers.get(signal.from);
    if (peer) peer.take(signal);
    else {
      const early = this._early.get(signal.from) ?? [];
      if (early.length < EARLY) this._early.set(signal.from, [...early, signal]);
    }
  }

  /** Switch to another microphone's stream. @param {MediaStream} stream */
  async replace(stream) {
    const [track] = stream.getAudioTracks();
    this.stream = stream;
    for (const { microphone } of this.peers.values()) await microphone.replaceTrack(track);
  }

  /** Send the voices of this participant's agents from now on. @param {MediaStream} stream */
  addAgents(stream) {
    this.agents = stream;
    for (const peer of this.peers.values()) peer.addAgents(stream);
  }

  close() {
    this._early.clear();
    for (const peer of [...this.peers.values()]) this._drop(peer);
  }

  /** @param {Peer} peer */
  _drop(peer) {
    this.peers.delete(peer.userId);
    peer.close();
    this.emit("gone", peer);
  }

  /** @param {string} type @param {Peer} detail */
  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
