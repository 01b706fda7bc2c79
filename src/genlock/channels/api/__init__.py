"""The API as a channel: a result is shown by keeping a copy of it in the media store."""
