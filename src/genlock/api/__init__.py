"""The HTTP API under `/v1`: orders with an idempotency key, results from the media store."""
