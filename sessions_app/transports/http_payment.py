"""Payment for an HTTP request with x402: the 402 reply, and payment with the next attempt.

Used by every HTTP edge without a conversation in which to ask a payer. Before a turn of the request
has started, a demand is a 402. A payment in the request's headers pays for the first turn and, as
far as it reaches, for later ones. After the first turn has started, a demand is a response.error of
its turn, and the request gets its reply.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from django.http import HttpRequest, HttpResponse

from payments_app import x402
from sessions_app import database, services
from sessions_app.billing import payers
from sessions_app.transports import payment_threads
from uamp import ErrorCode, PaymentErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession

PAYMENT_REQUIRED: Final = "payment_required"

DemandBody: TypeAlias = "Callable[[Mapping[str, Any]], bytes]"
"""Writes the JSON body of a 402, given the x402 body with `code` and `message`.

Dialects add their own members and keep those of x402, which version 1 reads from the body.
"""


class HttpPayment:
    """Pays for the turns of an HTTP request from its headers, or demands payment (x402).

    It becomes the connection's `pay`. `demand` is set if payment is needed before any turn has
    started; the edge then handles no more events of the request and returns `refusal`. Used by the
    request's task.
    """

    def __init__(
        self,
        request: HttpRequest,
        connection: ClientConnection,
        *,
        demand_body: DemandBody = msgspec.json.encode,
    ) -> None:
        self.demand: Mapping[str, Any] | None = None
        self.headers: dict[str, str] = {}
        self._request = request
        self._connection = connection
        self._demand_body = demand_body
        self._demand_headers: Mapping[str, str] = {}
        # Identifies the on-chain payment of this request, which pays for later turns as well.
        self._secret = ""
        connection.pay = self._pay
        # Payments in headers are accepted here, so that the reply carries the receipt.
        connection.defaults.payment_token = request.GET.get("payment_token")

    @property
    def refusal(self) -> HttpResponse | None:
        """The 402 for a request of which no turn has started, or None without a demand."""
        if self.demand is None:
            return None
        return HttpResponse(
            self._demand_body(self.demand),
            status=402,
            content_type="application/json",
            headers=self._demand_headers,
        )

    async def _pay(self, session: OpenSession, spec: AgentSpec, amount: Money) -> payers.Source:
        """Return the source that pays for a turn; raises RemoteProtocolError payment_required."""
        body = x402.requirements(
            amount,
            resource_url=self._request.build_absolute_uri(),
            description=spec.description or f"An answer of {spec.name}",
            agent=spec.name,
        )
        try:
            take = partial(
                x402.accept,
                dict(self._request.headers),
                body,
                user_id=session.principal.user_id,
                visitor=self._connection.principal.counted_as,
                secret=self._secret,
            )
            paid = await payment_threads.run(take)
        except x402.PaymentNotTaken as error:
            raise self._demanded(body, str(error), error.code) from error
        if paid is None:
            raise self._demanded(body, "Payment is required first.", PAYMENT_REQUIRED)
        self.headers.update(paid.response_headers)
        self._secret = paid.secret
        await database.run(services.keep_payment_token, session, paid.token_id)
        source = await database.run(payers.by_token, paid.token_id, spec.name, spec.id)
        if source is None:
            raise self._demanded(
                body, "The payment ended in the meantime.", PaymentErrorCode.TOKEN_INVALID
            )
        return source

    def _demanded(self, body: dict[str, Any], message: str, code: str) -> RemoteProtocolError:
        demand = {**body, "code": code, "message": message}
        if self._connection.has_begun:
            return RemoteProtocolError(
                ErrorCode.PAYMENT_REQUIRED, message, details={"payment": demand}
            )
        self.demand = demand
        self._demand_headers = x402.required_headers(body)
        return RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, message)
