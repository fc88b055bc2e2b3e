# One image for every role: docker-compose.yml says which command each container runs.
# docs/dependencies.md says why by tag, and how to pin it.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE}
ENV PYTHONUNBUFFERED=1 SONAR_HOME=/var/lib/sonar
# What movers that are programs need (docs/movers.md): a worker offers those whose programs it has.
RUN apt-get update && apt-get install -y --no-install-recommends \
        xrootd-client xrootd-client-plugins gfal2-util-scripts python3-gfal2-util gfal2-plugin-http \
        gfal2-plugin-xrootd gfal2-plugin-gridftp globus-gass-copy-progs iperf3 util-linux \
    && rm -rf /var/lib/apt/lists/*
# docker-compose.yml names the number of this user.
RUN useradd --uid 1000 --create-home --home-dir /var/lib/sonar sonar
WORKDIR /opt/sonar
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt
COPY manage.py ./
COPY sonar sonar
COPY matrix matrix
COPY templates templates
COPY static static
USER sonar
RUN python manage.py collectstatic --no-input
EXPOSE 8000
CMD ["gunicorn", "--config=python:sonar.gunicorn_conf", "--bind=0.0.0.0:8000"]
