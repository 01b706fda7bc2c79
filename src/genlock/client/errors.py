"""What can go wrong. An `ApiError` carries the problem document of the answer."""

from collections.abc import Mapping
from typing import Any

from genlock.client.types import Job


class GenlockError(Exception):
    """The base of all errors of this client."""


class ApiError(GenlockError):
    """The service refused a request. Nothing was charged for it."""

    def __init__(self, status: int, problem: Mapping[str, Any], idempotency_key: str | None = None) -> None:
        self.status = status
        #: the problem document (RFC 9457)
        self.problem = dict(problem)
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail", ""))
        #: the key of the order, if the request was one: the same order again needs the same key
        self.idempotency_key = idempotency_key
        super().__init__(f"{status} {self.code}: {self.detail}")

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the request may succeed."""
        value = self.problem.get("retry_after")
        return float(value) if isinstance(value, int | float) else None


class InvalidRequest(ApiError):
    """A value is wrong; `errors` names each."""

    @property
    def errors(self) -> list[dict[str, str]]:
        return list(self.problem.get("errors") or [])


class Unauthorized(ApiError):
    """The API key is missing, unknown or revoked."""


class NotEnoughCredits(ApiError):
    """The balance or the key's limit of the day does not cover the price. Nothing was held."""

    @property
    def price(self) -> float:
        return float(self.problem.get("price") or 0)

    @property
    def available(self) -> float:
        return float(self.problem.get("available") or 0)


class Forbidden(ApiError):
    """The API key may not do this."""


class NotFound(ApiError):
    """The account has no such thing, or not any more."""


class Conflict(ApiError):
    """The state does not allow it, or the price is above `max_price`."""


class TooManyRequests(ApiError):
    """A limit is reached, and repeating the request did not help within the retries."""


class Unavailable(ApiError):
    """The service could not answer, and repeating the request did not help within the retries."""


class ConnectionLost(GenlockError):
    """No answer came, also after retries. An order may have been accepted: repeat it with the same key."""

    def __init__(self, reason: str, idempotency_key: str | None = None) -> None:
        self.idempotency_key = idempotency_key
        super().__init__(reason)


def no_answer(url: str, error: Exception) -> str:
    """Return the reason of ConnectionLost. The type is named, too: the text of a time-out is empty."""
    return f"no answer from {url}: {error!r}"


class JobNotDelivered(GenlockError):
    """The job ended without a result. Nothing was charged."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.code = job.error.code if job.error else job.status
        super().__init__(f"{job.id} {job.status}: {job.error.message if job.error else 'there is no result'}")


class DamagedDownload(GenlockError):
    """The content that arrived is not the result."""


class InvalidWebhook(GenlockError):
    """The call is not from the service, or too old."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    402: NotEnoughCredits,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    429: TooManyRequests,
}
_SERVER_ERROR = 500


def api_error(status: int, problem: Mapping[str, Any], idempotency_key: str | None) -> ApiError:
    kind = _BY_STATUS.get(status, Unavailable if status >= _SERVER_ERROR else InvalidRequest)
    return kind(status, problem, idempotency_key)
