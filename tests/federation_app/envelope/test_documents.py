"""Manifests, hubs, DID documents and tokens: good ones, and ones that lie."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.names import tokens
from federation_app.envelope.names.identity import (
    document_of,
    identity_at,
    keys_of_document,
    read_identity,
)
from federation_app.envelope.names.manifests import (
    HUB_TYPE,
    MANIFEST_TYPE,
    AgentHub,
    ChildManifest,
    document_sha256,
    read_hub,
    read_manifest,
    signed_document,
)
from federation_app.envelope.signatures.jws import sign_compact
from tests.federation_app.envelope.vectors import CLIENT, WORKER, keys_of, private_keys, vector

pytestmark = pytest.mark.any_database
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MANIFEST = vector("04-manifest-es256")


def refusal(reader: Any, *args: Any, **kwargs: Any) -> EnvelopeCode:
    with pytest.raises(EnvelopeError) as refused:
        reader(*args, **kwargs)
    return refused.value.code


def signed_manifest(value: Any) -> str:
    payload = json.dumps(value).encode()
    return sign_compact(payload, private_keys()[WORKER], type_=MANIFEST_TYPE, detached=False)


def test_a_manifest_of_another_signer_or_content_is_refused() -> None:
    good, keys = MANIFEST["jws_compact"], keys_of(WORKER)
    header, payload, signature = good.split(".")
    other = private_keys()[CLIENT]
    stolen = sign_compact(b"{}", other, type_=MANIFEST_TYPE, detached=False)
    for jws in (f"{header}..{signature}", f"{header}.{payload[:-2]}{payload[-4:-2]}.{signature}"):
        assert refusal(read_manifest, jws, did=WORKER, keys=keys) in {"4.00", "4.01"}
    assert refusal(read_manifest, stolen, did=WORKER, keys=keys) == "4.01"
    assert refusal(read_manifest, good, did=CLIENT, keys=keys_of(CLIENT)) == "4.01"
    assert refusal(read_manifest, good, did=WORKER, keys=[]) == "4.01"


@pytest.mark.parametrize(
    "lie",
    [
        {"agent": "uamp/2.0"},
        {"agent": "uamp/1.0\n"},
        {"intents": "ask"},
        {"auth": ["basic"]},
        {"limits": {"max_body_kb": -1}},
        {"limits": {"max_body_kb": 2**40}},
        {"limits": {"other": 1}},
        {"description": 7},
        {"description": "x" * 5000},
        {"more": True},
        {"body_types": None},
    ],
    ids=json.dumps,
)
def test_a_manifest_of_another_form_is_refused(lie: dict[str, Any]) -> None:
    jws = signed_manifest({**MANIFEST["manifest"], **lie})

    assert refusal(read_manifest, jws, did=WORKER, keys=keys_of(WORKER)) == "4.00"


def test_a_hub_lists_manifests_with_their_digests() -> None:
    jws = MANIFEST["jws_compact"]
    child = ChildManifest(
        did=WORKER, url=read_identity(WORKER).manifest_url, sha256=document_sha256(jws)
    )
    hub = AgentHub(
        hub="uamp/1.0",
        issuer=CLIENT,
        manifests=[child],
        jwks={"keys": [key.jwk() for key in keys_of(CLIENT)]},
        trust_anchors=[CLIENT],
    )
    signed = signed_document(hub, private_keys()[CLIENT], type_=HUB_TYPE)

    assert read_hub(signed, did=CLIENT, keys=keys_of(CLIENT)) == hub
    assert refusal(read_manifest, signed, did=CLIENT, keys=keys_of(CLIENT)) == "4.01"
    stolen = AgentHub(
        hub="uamp/1.0", issuer=WORKER, manifests=[], jwks={"keys": []}, trust_anchors=[]
    )
    lying = signed_document(stolen, private_keys()[CLIENT], type_=HUB_TYPE)
    assert refusal(read_hub, lying, did=CLIENT, keys=keys_of(CLIENT)) == "4.01"


def test_a_did_document_gives_its_keys() -> None:
    keys = keys_of(CLIENT)
    document = document_of(CLIENT, keys)
    assert keys_of_document(document, CLIENT) == keys
    assert document == vector("keys")["did_documents"][CLIENT]
    relative = json.loads(json.dumps(document).replace(f'"{CLIENT}#', '"#'))
    assert [key.kid for key in keys_of_document(relative, CLIENT)] == [keys[0].kid]
    lies: list[dict[str, Any]] = [
        {"id": WORKER},
        {"assertionMethod": []},
        {"assertionMethod": [f"{WORKER}#p256-1"]},
        {"assertionMethod": "all"},
        {"verificationMethod": [{**document["verificationMethod"][0], "controller": WORKER}]},
        {"verificationMethod": [{**document["verificationMethod"][0], "publicKeyJwk": {}}]},
        {"verificationMethod": [{}] * 33},
    ]
    for lie in lies:
        assert refusal(keys_of_document, {**document, **lie}, CLIENT) in {"4.00", "4.01"}
    assert refusal(keys_of_document, [], CLIENT) == "4.01"


@pytest.mark.parametrize(
    "did",
    [
        "did:key:z6Mk",
        "did:web:",
        "did:web:a b",
        "did:web:HOST.example",
        "did:web:host.example/../x",
        "did:web:host.example:..:did",
        "did:web:host.example%3A0",
        "did:web:host.example%3A99999",
        "did:web:host.example%3a8443",
        "did:web:host.example%2Fpath",
        "did:web:user@host.example",
        "did:web:h\u00f6st.example",
        "did:web:host.example\n",
        f"did:web:{'a' * 600}",
    ],
)
def test_another_name_is_refused(did: str) -> None:
    assert refusal(read_identity, did) == "4.01"


def test_an_identity_of_an_agent_is_below_its_host() -> None:
    identity = identity_at("chat.example:8443", "agents", "echo")

    assert identity.did == "did:web:chat.example%3A8443:agents:echo"
    assert identity.document_url == "https://chat.example:8443/agents/echo/did.json"
    assert identity.manifest_url == (
        "https://chat.example:8443/agents/echo/.well-known/agent-manifest.json"
    )


def token(**changes: Any) -> str:
    claims = {
        "iss": CLIENT,
        "sub": CLIENT,
        "aud": WORKER,
        "scope": "uamp:ask uamp:subscribe",
        "iat": int(NOW.timestamp()),
        "exp": int(NOW.timestamp()) + 60,
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    payload = json.dumps(claims).encode()
    return sign_compact(payload, private_keys()[CLIENT], type_="JWT", detached=False)


def test_a_token_is_good_for_its_audience_and_scope() -> None:
    claims = tokens.verify_token(token(), audiences={WORKER}, now=NOW, keys=keys_of(CLIENT))
    claims.check_scope("ask")
    assert refusal(claims.check_scope, "cancel") == "4.03"
    signed_token = tokens.signed_token(
        private_keys()[CLIENT], issuer=CLIENT, subject=WORKER, audience=CLIENT, scope="", now=NOW
    )
    assert tokens.issuer_of(signed_token) == CLIENT
    again = tokens.verify_token(signed_token, audiences={CLIENT}, now=NOW, keys=keys_of(CLIENT))
    assert (again.subject, again.token_id) == (WORKER, "")


def test_a_token_of_a_type_has_an_id_and_a_lifetime() -> None:
    """As a capability token does: one of several audiences, for longer than an hour."""
    capability = tokens.signed_token(
        private_keys()[CLIENT],
        issuer=CLIENT,
        subject=WORKER,
        audience=[CLIENT, WORKER],
        scope="uamp:ask",
        now=NOW,
        seconds=7200,
        token_id="7",
    )
    rules: dict[str, Any] = {
        "audiences": {WORKER, "did:web:far.example"},
        "now": NOW,
        "keys": keys_of(CLIENT),
        "types": {tokens.CAPABILITY_TYPE},
        "seconds": 7200,
    }
    assert tokens.verify_token(capability, **rules).token_id == "7"
    assert refusal(tokens.verify_token, capability, **{**rules, "seconds": 7199}) == "4.01"
    far = {**rules, "audiences": {"did:web:far.example"}}
    assert refusal(tokens.verify_token, capability, **far) == "4.01"
    assert refusal(tokens.verify_token, token(), **rules) == "4.01", "typ"
    untyped = {**rules, "types": tokens.TOKEN_TYPES}
    assert tokens.verify_token(token(jti=7), **untyped).token_id == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": CLIENT},
        {"aud": None},
        {"iss": WORKER},
        {"iss": None},
        {"sub": 7},
        {"exp": None},
        {"exp": int(NOW.timestamp()) - 61},
        {"exp": int(NOW.timestamp()) + 3601},
        {"exp": "soon"},
        {"iat": None},
        {"iat": int((NOW + timedelta(minutes=2)).timestamp()), "exp": int(NOW.timestamp()) + 300},
        {"nbf": int(NOW.timestamp()) + 61},
        {"nbf": True},
    ],
    ids=json.dumps,
)
def test_a_token_of_other_claims_is_refused(changes: dict[str, Any]) -> None:
    code = refusal(
        tokens.verify_token, token(**changes), audiences={WORKER}, now=NOW, keys=keys_of(CLIENT)
    )
    assert code == "4.01"
