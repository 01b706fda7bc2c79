"""Durable generation jobs: each one delivered once and paid once."""

__version__ = "0.1.0"
