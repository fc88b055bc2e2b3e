# Two images: `web` serves the pages, `worker` sends the tests and keeps time; docker-compose.yml
# says which command each container runs. `tools` has PostgreSQL's programs beside Sonar's commands,
# `demo` the storage nodes of the sandbox. docs/containers.md says what each leaves out, and
# docs/dependencies.md why images are named by tag, and how to pin them.
ARG SONAR_DEBIAN_IMAGE=debian:bookworm-slim
ARG SONAR_POSTGRES_IMAGE=postgres:16

# What all have: Debian's Python, and the user whose number docker-compose.yml names.
FROM ${SONAR_DEBIAN_IMAGE} AS base
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt
RUN useradd --uid 1000 --create-home --home-dir /var/lib/sonar sonar \
    && install -d -o sonar -g sonar /run/sonar /run/sonar/secrets
ENV PATH=/opt/venv/bin:/usr/bin:/bin PYTHONUNBUFFERED=1 SONAR_HOME=/var/lib/sonar
WORKDIR /opt/sonar

# pip stays here, in an environment of its own.
FROM base AS build
ENV PATH=/opt/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN apt-get update && apt-get install -y --no-install-recommends binutils python3-venv \
    && python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/venv
ENV PIP="/opt/pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --no-compile \
    --no-deps --require-hashes"
COPY requirements.txt docs/containers/lock.py docs/containers/trim.py /build/

FROM build AS build-web
RUN python3 /build/lock.py web < /build/requirements.txt > /build/web.txt \
    && $PIP -r /build/web.txt && python3 /build/trim.py /opt/venv/lib/python3*/site-packages
COPY manage.py ./
COPY sonar sonar
COPY matrix matrix
COPY templates templates
COPY static static
# The pages need the files as collected; figures that are saved read the style sheet.
RUN python manage.py collectstatic --no-input && SONAR_SECRET_KEY=none python manage.py check \
    && rm -rf sonar/sandbox /opt/venv/share \
    && cd /opt/venv/lib/python3*/site-packages && rm -r django/contrib/*/static \
        drf_spectacular_sidecar/static rest_framework/static && cd - \
    && find "$SONAR_HOME/static" -name '*.map*' -delete \
    && find static -mindepth 1 -maxdepth 1 ! -name css -exec rm -r {} + \
    && python -m compileall -q -j 0 sonar matrix

# Of Debian, what runs: in the container of the pages nobody installs, logs in or mounts.
# Its list of packages stays, for those who look for known holes.
FROM base AS root
ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin
# For reports as PDF.
RUN apt-get update && apt-get install -y --no-install-recommends \
        fonts-dejavu-core libharfbuzz-subset0 libpangoft2-1.0-0
RUN rm -f /var/lib/dpkg/info/*.prerm /var/lib/dpkg/info/*.postrm \
    && dpkg --purge --force-all --no-triggers \
        adduser apt debian-archive-keyring diffutils e2fsprogs gpgv libapt-pkg6.0 libdb5.3 \
        libext2fs2 libgcrypt20 libgnutls30 libgssapi-krb5-2 libhogweed6 libidn2-0 libk5crypto3 \
        libkrb5-3 libkrb5support0 libnettle8 libnsl2 libp11-kit0 libpam-modules \
        libpam-modules-bin libpam-runtime libpam0g libsemanage2 libsepol2 libsmartcols1 \
        libsqlite3-0 libss2 libsystemd0 libtirpc3 libtirpc-common libudev1 libunistring2 libzstd1 \
        login logsave mount openssl passwd perl-base tar util-linux util-linux-extra \
    && find /usr/share/doc -type f ! -name copyright -delete \
    && rm -rf /var/lib/apt /var/cache/* /var/log/* /etc/apt /usr/bin/dpkg* /var/lib/dpkg/info \
        /usr/lib/*/gconv /usr/share/fonts/truetype/dejavu/DejaVuSerif* \
    && cd /usr/lib/python3.* && rm -rf lib2to3 pydoc_data test && python3 -m compileall -q -b . \
    && find . -name __pycache__ -prune -exec rm -r {} + && find . -name '*.py' -delete

FROM scratch AS web
COPY --from=root / /
COPY --from=build-web /opt/venv /opt/venv
COPY --from=build-web /var/lib/sonar/static /var/lib/sonar/static
COPY --from=build-web /opt/sonar /opt/sonar
COPY docs/containers/health docs/containers/secrets docs/containers/web /opt/sonar/containers/
ENV PATH=/opt/venv/bin:/usr/bin:/bin PYTHONUNBUFFERED=1 SONAR_HOME=/var/lib/sonar
WORKDIR /opt/sonar
USER sonar
EXPOSE 8000
CMD ["containers/web"]
ARG SONAR_VERSION=
ARG SONAR_REVISION=
LABEL org.opencontainers.image.title="Sonar: pages and API" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${SONAR_VERSION}" \
      org.opencontainers.image.revision="${SONAR_REVISION}"

FROM build AS build-worker
RUN python3 /build/lock.py worker < /build/requirements.txt > /build/worker.txt \
    && $PIP -r /build/worker.txt && python3 /build/trim.py /opt/venv/lib/python3*/site-packages
COPY manage.py ./
COPY sonar sonar
COPY matrix matrix
# What e-mail is written by.
COPY templates/mail templates/mail
RUN rm -rf sonar/sandbox && python -m compileall -q -j 0 sonar matrix

FROM base AS worker
# What movers that are programs need (docs/movers.md): a worker offers those whose programs it has.
RUN PATH=/usr/sbin:/sbin:$PATH && apt-get update && apt-get install -y --no-install-recommends \
        xrootd-client xrootd-client-plugins gfal2-util-scripts python3-gfal2-util gfal2-plugin-http \
        gfal2-plugin-xrootd gfal2-plugin-gridftp globus-gass-copy-progs iperf3 util-linux \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt
# Memory that is mounted there takes this mode, and the owner not with every engine.
RUN chmod 1777 /var/lib/sonar
COPY --from=build-worker /opt/venv /opt/venv
COPY --from=build-worker /opt/sonar /opt/sonar
COPY docs/containers/health /opt/sonar/containers/
USER sonar
CMD ["python", "-m", "sonar", "worker", "--pool=threads"]
ARG SONAR_VERSION=
ARG SONAR_REVISION=
LABEL org.opencontainers.image.title="Sonar: workers and beat" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${SONAR_VERSION}" \
      org.opencontainers.image.revision="${SONAR_REVISION}"

# Commands that need pg_dump, pg_restore and psql of the server's version, with the pages' commands.
# Its Python may be another one, as PostgreSQL's image may be of another Debian.
FROM ${SONAR_POSTGRES_IMAGE} AS tools
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
        fonts-dejavu-core libharfbuzz-subset0 libpangoft2-1.0-0 \
    && python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/venv
COPY requirements.txt docs/containers/lock.py /build/
RUN python3 /build/lock.py web < /build/requirements.txt > /build/web.txt \
    && /opt/pip/bin/pip --python /opt/venv/bin/python install --no-cache-dir --no-deps \
        --require-hashes -r /build/web.txt \
    && rm -rf /opt/pip /build /var/lib/apt/lists/* /var/cache/apt
RUN useradd --uid 1000 --create-home --home-dir /var/lib/sonar sonar
COPY --from=build-web /opt/sonar /opt/sonar
WORKDIR /opt/sonar
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 SONAR_HOME=/var/lib/sonar
USER sonar
ENTRYPOINT ["python", "manage.py"]
CMD ["help"]
LABEL org.opencontainers.image.title="Sonar: commands with PostgreSQL's programs"

FROM build AS build-demo
RUN python3 /build/lock.py demo < /build/requirements.txt > /build/demo.txt \
    && $PIP -r /build/demo.txt
COPY manage.py ./
COPY sonar sonar
COPY matrix matrix
COPY templates templates
COPY static static

FROM base AS demo
COPY --from=build-demo /opt/venv /opt/venv
COPY --from=build-demo /opt/sonar /opt/sonar
COPY docs/containers/health /opt/sonar/containers/
USER sonar
CMD ["python", "-m", "sonar.sandbox.demo"]
LABEL org.opencontainers.image.title="Sonar: simulated storage"
