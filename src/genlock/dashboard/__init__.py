"""The operator's dashboard: server-rendered pages at `/dashboard`, on every instance."""
