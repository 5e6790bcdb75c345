# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# IMG is the image of docker-build, docker-push, deploy and build-installer.
IMG ?= streamweir.dev/streamweir:latest
CONTAINER_TOOL ?= docker
KUBECTL ?= kubectl
# FUZZTIME is the time for each target of fuzz. BENCH and COUNT select the benchmarks of bench and the number of their runs.
FUZZTIME ?= 10s
BENCH ?= .
COUNT ?= 6
# SCALE_APPS and SCALE_OTHERS are the numbers of applications and of pods of others for scale.
SCALE_APPS ?= 300
SCALE_OTHERS ?= 5000

# A cache of the linter for each checkout: cached results have absolute paths, which break the rule on generated files in another checkout.
export GOLANGCI_LINT_CACHE ?= $(HOME)/.cache/streamweir/lint/$(shell pwd | cksum | cut -d ' ' -f 1)

TOOL := go tool -modfile=hack/tools/go.mod
GENERATE := $(TOOL) controller-gen
CALIBRATE := go build -o bin/calibrate ./test/calibration/memory && exec bin/calibrate
# INSTALLER prints the manifests of config/default with the image IMG.
INSTALLER := $(KUBECTL) kustomize config/default | sed 's|image: streamweir.dev/streamweir:latest|image: $(IMG)|'

.DEFAULT_GOAL := help

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; print "Usage:\n  make <target>"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the demo: a node fails, and plan, limits and configuration follow. Needs no cluster, Java or Docker.
	@KUBEBUILDER_ASSETS=$$(hack/control-plane.sh) && export KUBEBUILDER_ASSETS && \
		echo "building the operator and the demo" && go build -o bin/ . ./hack/demo && exec bin/demo

##@ Development

.PHONY: manifests
manifests: ## Generate the CRDs from api/ and the operator's role from the markers in controllers/.
	$(GENERATE) crd paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
	$(GENERATE) rbac:roleName=streamweir-manager paths=./controllers output:rbac:artifacts:config=config/rbac

.PHONY: generate
generate: ## Generate deep copies and apply configurations from api/.
	$(GENERATE) object:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1
	$(GENERATE) applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/v1alpha1

.PHONY: fmt
fmt: ## Format all Go files and sort their imports.
	$(TOOL) golangci-lint-kube-api-linter fmt

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: ## Run the linters.
	$(TOOL) golangci-lint-kube-api-linter run --allow-serial-runners

.PHONY: test
test: ## Run all tests.
	@hack/test.sh

.PHONY: verify
verify: ## Check format, lint, API rules, tidy modules, and that generated files are up to date.
	@hack/verify.sh

.PHONY: bench
bench: ## Run the planner's benchmarks and summarize them.
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./memplan/... | tee /dev/stderr | $(TOOL) benchstat -

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME.
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: compatibility
compatibility: ## Test the agent in all supported frameworks, JVMs and Kafka releases, and write docs/compatibility.md. 15 minutes.
	@results=$$(mktemp -d) && CI=true STREAMWEIR_COMPATIBILITY=$$results go test ./test/agent -count=1 -timeout 60m && rm -r "$$results"

.PHONY: scale
scale: ## Measure the operator with SCALE_APPS applications, and write docs/scale.md. Needs Linux, root and iproute2. 20 minutes.
	@SCALE_APPS=$(SCALE_APPS) SCALE_OTHERS=$(SCALE_OTHERS) SCALE_PAGE=$(CURDIR)/docs/scale.md \
		go test ./test/scale -run '^$$' -bench Scale -benchtime 1x -timeout 60m

.PHONY: control-plane
control-plane: ## Provide kube-apiserver, etcd and kubectl for the tests, and print their folder.
	@hack/control-plane.sh

##@ Build

.PHONY: build
build: ## Build the operator into bin/.
	CGO_ENABLED=0 go build -trimpath -o bin/streamweir .

.PHONY: run
run: ## Run the operator on this machine against the current cluster, after install. Without the policies of deploy it cannot inject.
	go run .

.PHONY: agent
agent: ## Build the agent's jar with Maven and JDK 17, and run its unit tests.
	@agent/build.sh

.PHONY: plugin
plugin: ## Install the kubectl plugin and its completion into Go's folder for binaries.
	@go install -trimpath ./cmd/kubectl-streamweir
	@bin=$$(go env GOBIN); install -m 755 cmd/kubectl-streamweir/kubectl_complete-streamweir "$${bin:-$$(go env GOPATH)/bin}"

.PHONY: docker-build
docker-build: ## Build the image IMG.
	$(CONTAINER_TOOL) build -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: all manifests of deploy in one file.
	mkdir -p dist
	$(INSTALLER) > dist/install.yaml

##@ Deployment

.PHONY: install
install: ## Install the CRDs into the current cluster.
	$(KUBECTL) apply --server-side -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CRDs, and with them all StreamApps.
	$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Deploy config/default with the image IMG to the current cluster. Needs Kubernetes 1.36.
	$(INSTALLER) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Delete everything that deploy has created. See the README for the steps before.
	$(KUBECTL) delete --ignore-not-found -k config/default

##@ Calibration (needs Linux, root, Java 17 and Maven)

.PHONY: calibrate
calibrate: ## Compare the memory of applications in cgroups with their plans: all, or those in SCENARIOS. An hour on two cores.
	@$(CALIBRATE) run $(SCENARIOS)

.PHONY: cascade
cascade: ## Fail one of three instances, with default RocksDB memory and with agent and plan. Half an hour.
	@$(CALIBRATE) cascade

.PHONY: throughput
throughput: ## Compare the throughput with agent and plan to that with default RocksDB memory. Half an hour.
	@$(CALIBRATE) throughput

.PHONY: calibrate-start
calibrate-start: ## Measure the cost of the agent at the start of a JVM.
	@$(CALIBRATE) start

.PHONY: fragmentation
fragmentation: ## Run one instance under steady updates for two hours.
	@$(CALIBRATE) fragmentation

.PHONY: calibrate-table
calibrate-table: ## Generate the tables of docs/calibration.md from the results in docs/calibration.
	@$(CALIBRATE) table
