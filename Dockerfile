# The operator as an image:
#   docker build --tag registry.example.com/team/cronwright:0.1.0 .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# Everything that is installed is named with its hash; the packages come first, since they change least.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/cronwright \
    && pip --python /opt/cronwright/bin/python install --require-hashes --only-binary :all: --requirement requirements.lock \
    && pip install --require-hashes --only-binary :all: --requirement requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && pip --python /opt/cronwright/bin/python install --no-deps --no-index /wheels/*.whl

FROM python:${PYTHON}-slim
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="cronwright" \
      org.opencontainers.image.description="Runs tasks on time on Kubernetes: every slot once, on time, or its status says why not." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# What is not there cannot be used by an intruder, nor be found by a scanner.
RUN python -m pip uninstall --yes --root-user-action=ignore pip \
    && rm -rf /usr/local/lib/python3.*/ensurepip
COPY --from=build /opt/cronwright /opt/cronwright
# The user has no entry in /etc/passwd (nor would the one that OpenShift chooses), but the Kubernetes client wants a
# home and kopf a name. No bytecode is written, since the root is read-only. Zones come from the tzdata package,
# whatever the base ships.
ENV HOME=/ \
    USER=cronwright \
    PATH=/opt/cronwright/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONTZPATH=
# A number, so that runAsNonRoot can be judged without looking into the image.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["cronwright"]
CMD ["operator"]
