// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// judged is what a pass says, checked for what every pass must hold: all conditions are there, well formed, and the same when asked
// again and with the pods in another order.
func judged(t *testing.T, p pass, done *applied) map[string]verdict {
	t.Helper()
	verdicts := judge(p.obs, p.lost, p.planned, p.want, done)
	if len(verdicts) != 6 {
		t.Errorf("%d conditions, want 6", len(verdicts))
	}
	for kind, v := range verdicts {
		if !reasonPattern.MatchString(v.reason) || v.message == "" || v.status == "" {
			t.Errorf("%s is badly formed: %+v", kind, v)
		}
		if strings.Contains(v.message, "%!") || strings.HasSuffix(v.message, ".") || strings.ContainsAny(v.message, "\n\t") {
			t.Errorf("the message of %s is badly formed: %q", kind, v.message)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(p.obs.pods), func(i, j int) { p.obs.pods[i], p.obs.pods[j] = p.obs.pods[j], p.obs.pods[i] })
		slices.SortFunc(p.obs.pods, func(a, b podFacts) int { return strings.Compare(a.name, b.name) }) // as observePods does
		again := plan(p.obs, p.lost)
		wantNoDiff(t, "verdicts of a second look", fmt.Sprint(verdicts), fmt.Sprint(judge(p.obs, p.lost, again, decide(p.obs, p.lost, again), done)))
	}
	return verdicts
}

var reasonPattern = regexp.MustCompile(`^[A-Z][A-Za-z]*$`)

// said is the expected answer to one condition.
type said struct {
	status  metav1.ConditionStatus
	reason  string
	message string // a part of it
}

func isYes(reason, message string) said  { return said{metav1.ConditionTrue, reason, message} }
func isNo(reason, message string) said   { return said{metav1.ConditionFalse, reason, message} }
func isOpen(reason, message string) said { return said{metav1.ConditionUnknown, reason, message} }

func (s said) check(t *testing.T, got verdict) {
	t.Helper()
	if got.status != s.status || got.reason != s.reason || !strings.Contains(got.message, s.message) {
		t.Errorf("got %s %s %q; want %s %s and a message with %q", got.status, got.reason, got.message, s.status, s.reason, s.message)
	}
}

func kafkaError(class assignment.Class) error { return &assignment.Error{Class: class, Group: testApp} }

func TestCompatible(t *testing.T) {
	two := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	cases := map[string]struct {
		given given
		want  said
	}{
		"all is well":                {given{group: groupOf(4, 4, 4)}, isYes(v1alpha1.ReasonCompatible, "can plan")},
		"no workload":                {given{workload: none{}, group: groupOf(4, 4, 4)}, isNo(v1alpha1.ReasonTargetNotFound, "StatefulSet orders must exist in namespace shop")},
		"two containers, none named": {given{workload: statefulSet(3, podTemplate("1Gi", two))}, isNo(v1alpha1.ReasonContainerAmbiguous, "app, proxy")},
		"no such container": {
			given{app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = "other" })}, isNo(v1alpha1.ReasonContainerNotFound, `no container "other"; it has app`),
		},
		"BestEffort":       {given{workload: statefulSet(3, podTemplate(""))}, isNo(v1alpha1.ReasonBestEffort, "set a memory limit")},
		"no memory limit":  {given{workload: statefulSet(3, podTemplate("", container(func(c *corev1.Container) { c.Resources = memoryResources("1Gi", "") })))}, isNo(v1alpha1.ReasonNoMemoryLimit, "must have a memory limit")},
		"flags that clash": {given{workload: statefulSet(3, podTemplate("1Gi", javaOptions("-XX:+UseG1GC -XX:+UseSerialGC")))}, isNo(v1alpha1.ReasonInvalidSettings, "JVM flags of container app")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdicts := judged(t, passOf(t, c.given), &applied{})
			c.want.check(t, verdicts[v1alpha1.ConditionCompatible])
			if c.want.status == metav1.ConditionFalse {
				c.want.check(t, verdicts[v1alpha1.ConditionReady]) // it counts first
			}
		})
	}
}

func TestTheYoungerSaysSo(t *testing.T) {
	p := passOf(t, given{group: groupOf(4, 4, 4)})
	p.obs.rival = "older"
	p.want = decide(p.obs, p.lost, p.planned)
	isNo(v1alpha1.ReasonDuplicateStreamApp, "StreamApp older is older").check(t, judged(t, p, &applied{})[v1alpha1.ConditionReady])
}

func TestAssignmentKnown(t *testing.T) {
	fromSpec := streamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 12}}
	})
	far := groupOf(4, 4, 4)
	far.Processes[1].Host = "192.0.2.1"
	inForce := &v1alpha1.PodInjection{}
	noSource := fault{v1alpha1.ReasonNoSource, "`kafka` is not set"}
	cases := map[string]struct {
		given given
		want  said
	}{
		"from Kafka":               {given{group: groupOf(4, 4, 4)}, isYes(v1alpha1.ReasonFromKafka, "group prod/orders (classic protocol)")},
		"from the spec":            {given{app: fromSpec, refused: noSource}, isYes(v1alpha1.ReasonFromSpec, "`streams`")},
		"from nowhere":             {given{refused: noSource}, isNo(v1alpha1.ReasonNoSource, "`kafka` is not set")},
		"no such cluster":          {given{refused: fault{v1alpha1.ReasonUnknownCluster, "no Kafka cluster"}}, isNo(v1alpha1.ReasonUnknownCluster, "no Kafka cluster")},
		"unreachable":              {given{groupErr: kafkaError(assignment.ClassUnreachable)}, isNo(v1alpha1.ReasonKafkaUnreachable, "cannot be reached")},
		"unreachable, once known":  {given{group: groupOf(4, 4, 4), groupErr: kafkaError(assignment.ClassTimeout)}, isNo(v1alpha1.ReasonKafkaUnreachable, "the last known plan is kept")},
		"unreachable, with a plan": {given{injection: inForce, groupErr: kafkaError(assignment.ClassTimeout)}, isNo(v1alpha1.ReasonKafkaUnreachable, "the last known plan is kept")},
		"refused":                  {given{groupErr: kafkaError(assignment.ClassUnauthorized)}, isNo(v1alpha1.ReasonKafkaRefused, "rejects")},
		"no such group":            {given{groupErr: kafkaError(assignment.ClassUnknownGroup)}, isNo(v1alpha1.ReasonGroupNotFound, "the group does not exist")},
		"another kind of group":    {given{groupErr: kafkaError(assignment.ClassNotStreamsGroup)}, isNo(v1alpha1.ReasonNotAStreamsGroup, "the group does not belong to a Kafka Streams")},
		"garbage":                  {given{groupErr: kafkaError(assignment.ClassMalformed)}, isNo(v1alpha1.ReasonUndecodable, "cannot be decoded")},
		"a member elsewhere":       {given{group: far}, isNo(v1alpha1.ReasonMembersNotMatched, "192.0.2.1")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, judged(t, passOf(t, c.given), &applied{})[v1alpha1.ConditionAssignmentKnown])
		})
	}
}

func TestAssignmentIsOpenUntilTheGroupHasShownIt(t *testing.T) {
	p := passOf(t, given{})
	p.obs.group = groupFacts{ref: assignment.Ref{Cluster: "prod", ApplicationID: testApp}, asked: true}
	isOpen(v1alpha1.ReasonNotObserved, "has not been asked").check(t, judgeAssignment(p.obs, p.planned))
	p.obs.group.latest = assignment.Observation{At: testNow, State: "PreparingRebalance"}
	isOpen(v1alpha1.ReasonRebalancing, "PreparingRebalance").check(t, judgeAssignment(p.obs, p.planned))
}

// TestEveryKafkaErrorHasAReason: a class that is added later must be given one.
func TestEveryKafkaErrorHasAReason(t *testing.T) {
	for name, value := range constantsOf(t, "../assignment/errors.go", "Class") {
		if class := assignment.Class(value); class != assignment.ClassNone && reasonOfClass[class] == "" {
			t.Errorf("%s has no reason for AssignmentKnown", name)
		}
	}
}

func TestErrorsOfTheNetworkStayOutOfStatus(t *testing.T) {
	err := &assignment.Error{Class: assignment.ClassUnreachable, Err: fmt.Errorf("dial tcp 10.9.8.7:9092: secret text")}
	for _, err := range []error{err, fmt.Errorf("polling: %w", err)} {
		v := judged(t, passOf(t, given{groupErr: err}), &applied{})[v1alpha1.ConditionAssignmentKnown]
		if strings.Contains(v.message, "secret") || strings.Contains(v.message, "10.9.8.7") {
			t.Errorf("message = %q, want the kind of the error alone", v.message)
		}
	}
}

func TestFitsAndCascadeSafe(t *testing.T) {
	observe := func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve }
	survive := func(count int32) change[v1alpha1.StreamApp] {
		return func(app *v1alpha1.StreamApp) { app.Spec.Memory.SurvivePodLosses = &count }
	}
	of := func(limit string, group *assignment.Group, changes ...change[v1alpha1.StreamApp]) given {
		return given{app: streamApp(changes...), group: group, workload: statefulSet(3, podTemplate(limit)), pods: runningPodsOf(3, limit)}
	}
	cases := map[string]struct {
		given         given
		fits, cascade said
	}{
		"plenty": {
			of("4Gi", groupOf(4, 4, 4), observe), isYes(v1alpha1.ReasonFits, "fits into its limit"), isYes(v1alpha1.ReasonSurvives, "of 3 pods may be lost"),
		},
		"too little for a loss": {
			of("1536Mi", groupOf(4, 4, 4), observe), isYes(v1alpha1.ReasonFits, ""), isNo(v1alpha1.ReasonWouldCascade, "the loss of one pod"),
		},
		"too little for a loss, and capped": {
			of("1536Mi", groupOf(4, 4, 4), observe, limitsBetween("", "1600Mi")), isYes(v1alpha1.ReasonFits, ""), isNo(v1alpha1.ReasonCapped, "`maxLimit` is 1600Mi"),
		},
		"none need be survived": {
			of("1536Mi", groupOf(4, 4, 4), observe, survive(0)), isYes(v1alpha1.ReasonFits, ""), isYes(v1alpha1.ReasonSurvives, ""),
		},
		"too little for now, with none to be survived": {
			of("512Mi", groupOf(4, 4, 4), observe, survive(0)), isNo(v1alpha1.ReasonShortage, ""), isNo(v1alpha1.ReasonWouldCascade, "do not even hold"),
		},
		"too little for now, observed": {
			of("512Mi", groupOf(4, 4, 4), observe), isNo(v1alpha1.ReasonShortage, "3 pods have too small a limit; orders-0 has 512Mi and needs"),
			isNo(v1alpha1.ReasonWouldCascade, ""),
		},
		"too little for now, enforced": {
			of("512Mi", groupOf(4, 4, 4)), isNo(v1alpha1.ReasonShortage, "a limit of 512Mi does not hold"), isNo(v1alpha1.ReasonWouldCascade, ""),
		},
		"it is not known what runs": {
			given{}, isOpen(v1alpha1.ReasonAssignmentUnknown, ""), isOpen(v1alpha1.ReasonAssignmentUnknown, ""),
		},
		"no target": {
			given{workload: none{}, group: groupOf(4, 4, 4)}, isOpen(v1alpha1.ReasonNotObserved, ""), isOpen(v1alpha1.ReasonNotObserved, ""),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdicts := judged(t, passOf(t, c.given), &applied{})
			c.fits.check(t, verdicts[v1alpha1.ConditionFits])
			c.cascade.check(t, verdicts[v1alpha1.ConditionCascadeSafe])
		})
	}
}

func TestApplied(t *testing.T) {
	inForce := after(t, given{group: groupOf(4, 4, 4), app: streamApp(), workload: statefulSet(3, podTemplate("4Gi")), pods: runningPodsOf(3, "4Gi")})
	with := func(pods ...*corev1.Pod) given {
		g := inForce
		g.pods = pods
		return g
	}
	resizing := func(kind corev1.PodConditionType, reason, message string) *corev1.Pod {
		return runningPod(1, "4Gi", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
		})
	}
	bare := func(age time.Duration) *corev1.Pod {
		return runningPod(0, "4Gi", func(p *corev1.Pod) { p.Annotations, p.CreationTimestamp = nil, metav1.NewTime(testNow.Add(-age)) })
	}
	optedOut := runningPod(0, "4Gi", func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"} })
	refusedPods := map[string]refusal{"orders-1": {pod: "orders-1", limit: 2048 * mib, message: "b"}, "orders-0": {pod: "orders-0", limit: 1024 * mib, message: "a"}}
	cases := map[string]struct {
		given given
		done  applied
		want  said
	}{
		"all is as it should be": {inForce, applied{}, isYes(v1alpha1.ReasonApplied, "run with the plan")},
		"the mode is Observe":    {given{app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" })}, applied{}, isNo(v1alpha1.ReasonObserveMode, "nothing is applied")},
		"held":                   {given{group: groupOf(40, 40, 40), app: streamApp()}, applied{}, isNo(v1alpha1.ReasonShortage, "nothing was changed")},
		"blocked": {given{workload: statefulSet(3, podTemplate("1Gi", container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{}}}
		})))}, applied{}, isNo(v1alpha1.ReasonOptionsNotVisible, "valueFrom")},
		"older than the plan":     {with(bare(3*time.Hour), runningPod(1, "4Gi")), applied{}, isNo(v1alpha1.ReasonRestartNeeded, "kubectl -n shop rollout restart statefulset/orders")},
		"missed by the injection": {with(bare(time.Hour), runningPod(1, "4Gi")), applied{}, isNo(v1alpha1.ReasonPodsNotInjected, "the first is orders-0")},
		"opted out":               {with(optedOut, runningPod(1, "4Gi")), applied{}, isYes(v1alpha1.ReasonApplied, "")},
		"refused":                 {inForce, applied{refused: refusedPods}, isNo(v1alpha1.ReasonResizeRefused, "refuses a limit of 1Gi for 2 pods: a")},
		"a write failed":          {inForce, applied{failed: errors.New("writing PodInjection orders: no")}, isNo(v1alpha1.ReasonWriteFailed, "writing PodInjection orders: no")},
		"just raised":             {inForce, applied{resized: []string{"pod orders-0"}}, isNo(v1alpha1.ReasonInProgress, "being raised")},
		"deferred":                {with(runningPod(0, "4Gi"), resizing(corev1.PodResizePending, corev1.PodReasonDeferred, "no room")), applied{}, isNo(v1alpha1.ReasonResizeDeferred, "one pod is not done (Deferred): no room")},
		"infeasible":              {with(runningPod(0, "4Gi"), resizing(corev1.PodResizePending, corev1.PodReasonInfeasible, "too large")), applied{}, isNo(v1alpha1.ReasonResizeInfeasible, "too large")},
		"failed":                  {with(runningPod(0, "4Gi"), resizing(corev1.PodResizeInProgress, corev1.PodReasonError, "cgroup")), applied{}, isNo(v1alpha1.ReasonResizeError, "cgroup")},
		"on its way":              {with(runningPod(0, "4Gi"), resizing(corev1.PodResizeInProgress, "", "")), applied{}, isNo(v1alpha1.ReasonInProgress, "InProgress")},
		"the worst of two, with its own message": {
			with(func() *corev1.Pod {
				p := resizing(corev1.PodResizePending, corev1.PodReasonDeferred, "no room")
				p.Name = "orders-0"
				return p
			}(), resizing(corev1.PodResizeInProgress, corev1.PodReasonError, "cgroup")), applied{}, isNo(v1alpha1.ReasonResizeError, "(Error): cgroup"),
		},
		"a resize would restart the container": {
			given{group: groupOf(4, 4, 4), pods: append(runningPodsOf(2, "4Gi"), runningPod(2, "1Gi", restartOnResize))}, applied{},
			isNo(v1alpha1.ReasonRestartNeeded, "a larger limit is needed by one pod, the first is orders-2"),
		},
		"withdrawn": {withdrawnGiven(t), applied{}, isNo(v1alpha1.ReasonPodCreationRefused, "new pods get the template's 1Gi")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.check(t, judged(t, passOf(t, c.given), &c.done)[v1alpha1.ConditionApplied])
		})
	}
}

func withdrawnGiven(t *testing.T) given {
	t.Helper()
	g := after(t, given{group: groupOf(12, 12, 12)})
	g.pods, g.workload = runningPodsOf(3, g.injection.Spec.Memory.Limit.String()), deployment(3, podTemplate("1Gi"), failing)
	return g
}

func TestReady(t *testing.T) {
	good := map[string]verdict{}
	for _, kind := range conditionOrder {
		good[kind] = yes("Good", "good")
	}
	with := func(kind string, v verdict) map[string]verdict {
		verdicts := maps.Clone(good)
		verdicts[kind] = v
		return verdicts
	}
	isYes(v1alpha1.ReasonAllGood, "").check(t, judgeReady(good))
	isYes(v1alpha1.ReasonObserving, "").check(t, judgeReady(with(v1alpha1.ConditionApplied, no(v1alpha1.ReasonObserveMode, "x"))))
	isNo("Bad", "worse").check(t, judgeReady(with(v1alpha1.ConditionFits, no("Bad", "worse"))))
	isOpen("Open", "why").check(t, judgeReady(with(v1alpha1.ConditionAssignmentKnown, unknown("Open", "why"))))
}

// constantsOf reads the string constants of a type from a source file.
func constantsOf(t *testing.T, file, typeName string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == typeName {
			found[spec.Names[0].Name] = strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typeName)
	}
	return found
}
