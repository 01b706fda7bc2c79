# Built in two steps, so that neither compilers nor caches end up in what runs.
# The base image is named by its digest: `make images` prints the argument, and without it the build is refused.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE} AS build
ARG PYTHON_IMAGE
RUN case "$PYTHON_IMAGE" in *@sha256:*) ;; *) echo "PYTHON_IMAGE has no digest: run make images" >&2; exit 1 ;; esac
WORKDIR /src
# Every package is a wheel with a known hash, so that no build backend other than the locked one runs.
COPY requirements/build.lock requirements/run.lock requirements/
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements/build.lock \
    && python -m venv /opt/genlock \
    && /opt/genlock/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements/run.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/build/bin/python -m hatchling build -t wheel -d /dist \
    && /opt/genlock/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl \
    && /opt/genlock/bin/pip uninstall --yes --quiet pip

FROM ${PYTHON_IMAGE}
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
