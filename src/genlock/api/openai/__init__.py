"""Images and videos in the shape of OpenAI's API, over the same jobs, so that its clients can order here."""
