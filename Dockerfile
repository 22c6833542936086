# SPDX-License-Identifier: BSD-3-Clause
# stpd and its programs over UDP, for an ordinary user: docker build -t stp .
# docs/operations.md says how to run it (section "Containers").
FROM debian:12 AS build
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ cmake ninja-build pkg-config libdpdk-dev libpcap-dev libcli11-dev libboost-dev libxxhash-dev scdoc \
    python3-dev pybind11-dev dpkg-dev file
COPY . /stp
WORKDIR /stp
RUN cmake --preset package && cmake --build build-package && cd build-package && cpack

FROM debian:12
COPY --from=build /stp/build-package/stp_*.deb /tmp/
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /tmp/stp_*.deb && \
    rm -rf /tmp/stp_*.deb /var/lib/apt/lists/* && install -d -o 65534 -g 65534 /run/stpd
USER 65534:65534
EXPOSE 8181/udp
HEALTHCHECK --interval=10s --timeout=5s CMD ["/usr/bin/stpctl", "links"]
ENTRYPOINT ["/usr/sbin/stpd"]
CMD ["--link", "udp:"]
