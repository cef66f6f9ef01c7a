# The harness with its strongest sandbox. Build it in a clone: `docker build -t experiment-harness .`
# bwrap needs user namespaces, which Docker's default profile forbids, so run it as README.md says.
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml README.md LICENSE /source/
COPY harness /source/harness
COPY templates /source/templates
COPY hooks /source/hooks
COPY examples /source/examples
RUN pip install --no-cache-dir /source scikit-learn && rm -rf /source
WORKDIR /project
ENTRYPOINT ["harness"]
