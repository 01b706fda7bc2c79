# Built in two steps, so that neither compilers nor caches end up in what runs.
FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/genlock
COPY requirements/run.lock requirements/run.lock
RUN /opt/genlock/bin/pip install --no-cache-dir --require-hashes --requirement requirements/run.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/genlock/bin/pip install --no-cache-dir --no-deps . \
    && /opt/genlock/bin/pip uninstall --yes --quiet pip

FROM python:3.12-slim
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin genlock \
    && install --directory --owner genlock --group genlock /data
COPY --from=build /opt/genlock /opt/genlock
ENV PATH=/opt/genlock/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    GENLOCK_HOST=0.0.0.0 \
    GENLOCK_PORT=8080 \
    GENLOCK_DATABASE_URL=sqlite:////data/genlock.db
USER genlock
WORKDIR /data
VOLUME /data
EXPOSE 8080
# /health says that the process answers; whether it should have traffic is what /ready says.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ['GENLOCK_PORT']}/health\", timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["genlock", "serve"]
