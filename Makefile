# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# The image that docker-build makes and deploy runs.
IMG ?= streamweir.dev/streamweir:latest
KUBECTL ?= kubectl
# How long `make fuzz` gives each target, and which benchmarks `make bench` runs how often.
FUZZTIME ?= 10s
BENCH ?= .
COUNT ?= 6

TOOL := go tool -modfile=hack/tools/go.mod
GENERATE := $(TOOL) controller-gen

.DEFAULT_GOAL := help

##@ Every day

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show the main job, from the loss of a pod to the changed limits: no cluster, no Java, no Docker.
	@KUBEBUILDER_ASSETS=$$(hack/control-plane.sh) && export KUBEBUILDER_ASSETS && \
		echo "building the operator and the demo" && go build -o bin/ . ./hack/demo && exec bin/demo

.PHONY: test
test: ## Run all tests.
	@hack/test.sh

.PHONY: verify
verify: ## Check format, lint, API rules, tidy modules, and that generated files are up to date.
	@hack/verify.sh

.PHONY: build
build: ## Build the operator into bin/.
	CGO_ENABLED=0 go build -trimpath -o bin/streamweir .

.PHONY: agent
agent: ## Build the agent's jar with Maven and JDK 17, and run its unit tests.
	@agent/build.sh

.PHONY: plugin
plugin: ## Install the kubectl plugin, with its completion, into Go's folder of programs.
	@go install -trimpath ./cmd/kubectl-streamweir
	@bin=$$(go env GOBIN); install -m 755 cmd/kubectl-streamweir/kubectl_complete-streamweir "$${bin:-$$(go env GOPATH)/bin}"

##@ After a change

.PHONY: fmt
fmt: ## Format all Go files and sort their imports.
	$(TOOL) golangci-lint-kube-api-linter fmt

.PHONY: lint
lint: ## Run the linters.
	$(TOOL) golangci-lint-kube-api-linter run --allow-serial-runners

.PHONY: generate
generate: ## Generate deep copies and apply configurations from api/.
	$(GENERATE) object:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(GENERATE) applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1

.PHONY: manifests
manifests: ## Generate the CRDs from api/ and the operator's role from the markers in controllers/.
	$(GENERATE) crd paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
	$(GENERATE) rbac:roleName=streamweir-manager paths=./controllers output:rbac:artifacts:config=config/rbac

.PHONY: bench
bench: ## Run the planner's benchmarks and summarise them.
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./memplan/... | tee /dev/stderr | $(TOOL) benchstat -

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME.
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: control-plane
control-plane: ## Provide kube-apiserver, etcd and kubectl for the tests, and print their folder.
	@hack/control-plane.sh

##@ Against measured memory (Linux, root, Java 17, Maven once)

CALIBRATE := go build -o bin/calibrate ./test/calibration/memory && exec bin/calibrate

.PHONY: calibrate
calibrate: ## Measure applications in memory cgroups against their plans: all, or those in SCENARIOS. An hour on two cores.
	@$(CALIBRATE) run $(SCENARIOS)

.PHONY: cascade
cascade: ## Lose one of three instances, as shipped and with agent and plan. Half an hour.
	@$(CALIBRATE) cascade

.PHONY: throughput
throughput: ## Measure the throughput with agent and plan against as shipped. Half an hour.
	@$(CALIBRATE) throughput

.PHONY: compatibility
compatibility: ## Run the agent in every application, JVM and release that it was made for, and write docs/compatibility.md. A quarter of an hour.
	@results=$$(mktemp -d) && CI=true STREAMWEIR_COMPATIBILITY=$$results go test ./test/agent -count=1 -timeout 60m && rm -r "$$results"

.PHONY: calibrate-start
calibrate-start: ## Measure what the agent costs at the start of a JVM.
	@$(CALIBRATE) start

.PHONY: fragmentation
fragmentation: ## Run one instance under steady updates for two hours.
	@$(CALIBRATE) fragmentation

.PHONY: calibrate-table
calibrate-table: ## Generate the tables of docs/calibration.md from the results in docs/calibration.
	@$(CALIBRATE) table

##@ In a cluster

.PHONY: docker-build
docker-build: ## Build the image IMG.
	docker build -t $(IMG) .

.PHONY: install
install: ## Install the CRDs.
	$(KUBECTL) apply --server-side -k config/crd

.PHONY: deploy
deploy: ## Install config/default with the image IMG. Needs Kubernetes 1.36.
	$(KUBECTL) kustomize config/default | sed 's|image: streamweir.dev/streamweir:latest|image: $(IMG)|' | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove what deploy installed. The README says what comes before.
	$(KUBECTL) delete --ignore-not-found -k config/default
