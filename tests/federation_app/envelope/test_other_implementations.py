"""Envelopes between this server, joserfc, and node: each verifies what the others sign."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.signatures.canonical import without_signature
from federation_app.envelope.signatures.signature import SIGNATURE_TYPE, signature_payload, signed
from tests import services
from tests.federation_app.envelope.vectors import SIGNED, private_keys, vector, verified
from tests.programs import PROGRAM_SECONDS
from tests.uamp.signatures.node_crypto import verified_by_node

pytestmark = [
    pytest.mark.any_database,
    # RFC 9864 names it Ed25519; the specification names it EdDSA.
    pytest.mark.filterwarnings("ignore:EdDSA is deprecated"),
]

PROGRAM = Path(__file__).with_name("sign_in_node.mjs")
UNSIGNED = [without_signature(vector(name)["envelope"]) for name in SIGNED]
PUBLIC = [
    {name: value for name, value in jwk.items() if name != "d"} for jwk in vector("keys")["keys"]
]


def signed_by_node(*, attached: bool) -> list[Any]:
    """Return the envelopes of the vectors with new signatures of node."""
    node = services.node()
    if node is None:
        pytest.skip("no node: `make install` installs one")
    task = {"keys": vector("keys")["keys"], "envelopes": UNSIGNED, "attached": attached}
    run = subprocess.run(  # noqa: S603 our own program
        [node, str(PROGRAM)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert run.returncode == 0, run.stderr
    signatures = json.loads(run.stdout)
    return [{**envelope, "sig": sig} for envelope, sig in zip(UNSIGNED, signatures, strict=True)]


def key_of(did: str, *, private: bool) -> Any:
    """Return a key of the vectors as joserfc has it."""
    keys = vector("keys")["keys"] if private else PUBLIC
    jwk = next(key for key in keys if key["kid"].startswith(f"{did}#"))
    return (OKPKey if jwk["kty"] == "OKP" else ECKey).import_key(jwk)


@pytest.mark.parametrize("attached", [False, True], ids=["detached", "attached"])
def test_what_node_signs_is_verified_here(*, attached: bool) -> None:
    envelopes = signed_by_node(attached=attached)
    for value, name in zip(envelopes, SIGNED, strict=True):
        envelope, key = verified(value, accepts_naive=False)
        assert (envelope.sha256, key.kid) == (vector(name)["sha256"], vector(name)["kid"])
        if key.algorithm == "EdDSA" and not attached:
            assert value["sig"] == vector(name)["sig"], "Ed25519 signs alike everywhere"
        with pytest.raises(EnvelopeError) as refused:
            verified({**value, "stream_id": "another"})
        assert refused.value.code is EnvelopeCode.UNAUTHENTICATED


def test_what_this_server_signs_is_verified_by_node() -> None:
    good = [signed(envelope, private_keys()[envelope["from"]]) for envelope in UNSIGNED]
    changed = [{**envelope, "stream_id": "another"} for envelope in good]
    documents = [
        {"kind": "envelope", "envelope": envelope, "keys": PUBLIC} for envelope in (*good, *changed)
    ]
    assert verified_by_node(documents) == [True] * len(good) + [False] * len(good)


@pytest.mark.parametrize("name", SIGNED)
def test_joserfc_and_this_server_verify_each_other(name: str) -> None:
    case = vector(name)
    content, did = without_signature(case["envelope"]), case["envelope"]["from"]
    payload = signature_payload(case["sha256"])
    signature = signed(content, private_keys()[did])["sig"]
    compact_jws = signature.replace("..", f".{case['jws_payload_b64u']}.")
    algorithms = [case["alg"]]
    decoded = jws.deserialize_compact(
        compact_jws, key_of(did, private=False), algorithms=algorithms
    )
    assert decoded.payload == payload

    header = {"alg": case["alg"], "kid": case["kid"], "typ": SIGNATURE_TYPE}
    theirs = jws.serialize_compact(header, payload, key_of(did, private=True), algorithms)
    first, _, last = theirs.split(".")
    assert verified({**content, "sig": f"{first}..{last}"})[0].sha256 == case["sha256"]
