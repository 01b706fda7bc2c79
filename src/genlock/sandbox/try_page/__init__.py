"""The page at `/try`: an example of an application that uses only the HTTP API."""
