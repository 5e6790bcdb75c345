# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

FROM golang:1.26 AS build
WORKDIR /src
# The modules first: a change of the code then needs no download.
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY agent/agent.go agent/streamweir-agent.jar agent/
COPY agent/planfile agent/planfile
COPY agent/report agent/report
COPY agent/reportclient agent/reportclient
COPY api api
COPY assignment assignment
COPY controllers controllers
COPY internal/operatorconfig internal/operatorconfig
COPY internal/tracker internal/tracker
COPY memplan memplan
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /streamweir .

# Only the binary and the certificate authorities for TLS connections.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /streamweir /streamweir
USER 65532:65532
ENTRYPOINT ["/streamweir"]
