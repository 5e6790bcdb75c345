// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestInjectionByOwner(t *testing.T) {
	payments := anInjection(forOwner(v1alpha1.KindDeployment, "payments"), func(spec *v1alpha1.PodInjectionSpec) {
		spec.PlanConfigMap, spec.PlanRevision = "streamweir-plan-payments", "g2"
	})
	payments.Name = "payments"
	deployment := []v1alpha1.PodInjection{anInjection(forOwner(v1alpha1.KindDeployment, "orders"))}
	bare := &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}}

	testInjections(t, map[string]injectionCase{
		"a pod of the StatefulSet is injected":            {pod: aPod(), want: bare},
		"a pod of another StatefulSet is not":             {pod: aPod(ownedBy("StatefulSet", "orders-2"))},
		"a pod of another kind with the same name is not": {pod: aPod(ownedBy("DaemonSet", "orders"))},
		"a pod without an owner is not":                   {pod: aPod(func(pod *corev1.Pod) { pod.OwnerReferences = nil })},
		"a pod whose owner is not its controller is not": {
			pod: aPod(func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }),
		},
		"a kind of the same name in another group is not": {
			pod: aPod(func(pod *corev1.Pod) { pod.OwnerReferences[0].APIVersion = "example.com/v1" }),
		},
		"a pod of the Deployment is injected": {
			injections: deployment,
			pod:        aPod(ownedByDeployment("orders", "5d9c")),
			want:       bare,
		},
		"a pod of a Deployment with a longer name is not": {
			injections: deployment,
			pod:        aPod(ownedByDeployment("orders-api", "5d9c")),
		},
		"a pod of a StatefulSet with the name of the Deployment is not": {injections: deployment, pod: aPod()},
		"a pod of a ReplicaSet without a Deployment is not": {
			injections: deployment,
			pod:        aPod(ownedBy("ReplicaSet", "orders-5d9c")),
		},
		"of two StreamApps a pod gets its own, the StatefulSet's": {
			injections: []v1alpha1.PodInjection{anInjection(), payments}, pod: aPod(), want: bare,
		},
		"of two StreamApps a pod gets its own, the Deployment's": {
			injections: []v1alpha1.PodInjection{payments, anInjection()},
			pod:        aPod(ownedByDeployment("payments", "5d9c")),
			want:       &injected{revision: "g2", env: bare.env},
		},
		"a pod that opts out is not injected":           {pod: aPod(annotated(v1alpha1.InjectAnnotation, "false"))},
		"a pod that opts in is injected":                {pod: aPod(annotated(v1alpha1.InjectAnnotation, "true")), want: bare},
		"a plan annotation in the template is replaced": {pod: aPod(annotated(v1alpha1.PlanAnnotation, "mine")), want: bare},
		"a pod without the container is not injected":   {pod: aPod(func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" })},
	})
}

func TestInjectionOfOptions(t *testing.T) {
	secret := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "options"}}}
	configMap := corev1.EnvFromSource{
		Prefix:       "JDK_",
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "options"}},
	}
	known := func(own string) []v1alpha1.PodInjection { return []v1alpha1.PodInjection{anInjection(ownOptions(own))} }
	tools := []v1alpha1.PodInjection{anInjection(everyJVM)}
	withOther := app(withEnv("OTHER", "-da"))
	vmOptions := "JAVA_TOOL_OPTIONS=-XX:VMOptionsFile=/etc/streamweir/plan/jvm.options"

	testInjections(t, map[string]injectionCase{
		"no env at all": {
			pod:  aPod(),
			want: &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"other variables keep their positions": {
			pod:  aPod(app(withEnv("A", "1"), withEnv("B", "$(A)"))),
			want: &injected{env: []string{"A=1", "B=$(A)", "JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"the container's own options follow, in the same position": {
			pod:  aPod(app(withEnv("A", "-Xmx512m"), withEnv("JDK_JAVA_OPTIONS", "$(A) -ea"), withEnv("B", "2"))),
			want: &injected{env: []string{"A=-Xmx512m", "JDK_JAVA_OPTIONS=" + options + " $(A) -ea", "B=2", noArenas, podUID}},
		},
		"empty options are treated as none": {
			pod:  aPod(app(withEnv("JDK_JAVA_OPTIONS", ""))),
			want: &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"options that already contain the plan stay": {
			pod:  aPod(app(withEnv("JDK_JAVA_OPTIONS", "-ea "+options))),
			want: &injected{env: []string{"JDK_JAVA_OPTIONS=-ea " + options, noArenas, podUID}},
		},
		"the last of duplicates counts": {
			pod:  aPod(app(withEnv("JDK_JAVA_OPTIONS", "-da"), withEnv("A", "1"), withEnv("JDK_JAVA_OPTIONS", "-ea"))),
			want: &injected{env: []string{"JDK_JAVA_OPTIONS=-da", "A=1", "JDK_JAVA_OPTIONS=" + options + " -ea", noArenas, podUID}},
		},
		"other duplicates stay": {
			pod:  aPod(app(withEnv("A", "1"), withEnv("A", "2"))),
			want: &injected{env: []string{"A=1", "A=2", "JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"options by valueFrom cannot be read: not injected": {
			pod: aPod(app(withEnvFromSecretKey("JDK_JAVA_OPTIONS", "options"))),
		},
		"options by valueFrom are not injected even with known envFrom": {
			injections: known(""),
			pod:        aPod(app(withEnvFromSecretKey("JDK_JAVA_OPTIONS", "options"))),
		},
		"another variable by valueFrom has no effect": {
			pod:  aPod(app(withEnvFromSecretKey("A", "options"))),
			want: &injected{env: []string{"A<options", "JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"envFrom with an unknown Secret: not injected":                  {pod: aPod(app(withEnvFrom(secret)))},
		"envFrom with an unknown ConfigMap with a prefix: not injected": {pod: aPod(app(withEnvFrom(configMap)))},
		"envFrom with a Secret without options": {
			injections: known(""),
			pod:        aPod(app(withEnvFrom(secret))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, podUID}},
		},
		"envFrom with a ConfigMap with a prefix and options": {
			injections: known("$(JDK_JAVA_OPTIONS)"),
			pod:        aPod(app(withEnvFrom(configMap))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + options + " $(JDK_JAVA_OPTIONS)", podUID}},
		},
		"envFrom removed from the template": {
			injections: known("$(JDK_JAVA_OPTIONS)"),
			pod:        aPod(),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"envFrom removed from the template, and options in the spec": {
			injections: known("-ea $(JDK_JAVA_OPTIONS) $(OTHER)"),
			pod:        aPod(withOther),
			want:       &injected{env: []string{"OTHER=-da", "JDK_JAVA_OPTIONS=" + options + " -ea  $(OTHER)", noArenas, podUID}},
		},
		"env wins over envFrom, as in the container": {
			injections: known("-Dimage=1"),
			pod:        aPod(app(withEnvFrom(secret), withEnv("JDK_JAVA_OPTIONS", "-ea"))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + options + " -ea", podUID}},
		},
		"options of the image, set in the spec": {
			injections: known("-Dimage=1"),
			pod:        aPod(),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + options + " -Dimage=1", noArenas, podUID}},
		},
		"the container's own number of arenas stays": {
			pod:  aPod(app(withEnv("MALLOC_ARENA_MAX", "1"))),
			want: &injected{env: []string{"MALLOC_ARENA_MAX=1", "JDK_JAVA_OPTIONS=" + options, podUID}},
		},
		"JAVA_TOOL_OPTIONS of the container are unchanged": {
			pod:  aPod(app(withEnv("JAVA_TOOL_OPTIONS", "-Xmx1g"))),
			want: &injected{env: []string{"JAVA_TOOL_OPTIONS=-Xmx1g", "JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"JAVA_TOOL_OPTIONS as set in the spec": {
			injections: tools,
			pod:        aPod(app(withEnv("JAVA_TOOL_OPTIONS", "-ea"))),
			want:       &injected{env: []string{vmOptions + " -ea", noArenas, podUID}},
		},
		"JAVA_TOOL_OPTIONS with an options file of its own: not injected": {
			injections: tools,
			pod:        aPod(app(withEnv("JAVA_TOOL_OPTIONS", "-XX:VMOptionsFile=/app/my.options"))),
		},
	})
}

func TestInjectionOfVolumes(t *testing.T) {
	wantEnv := &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}}
	own := volume("own", configMapVolume("own"))
	testInjections(t, map[string]injectionCase{
		"a mount elsewhere stays":                        {pod: aPod(own, app(withMount("own", "/etc/app"))), want: wantEnv},
		"a mount with a common prefix of the path stays": {pod: aPod(own, app(withMount("own", "/etc/streamweir-app"))), want: wantEnv},
		"a mount at the plan's path: not injected":       {pod: aPod(own, app(withMount("own", "/etc/streamweir/plan")))},
		"a mount at the path with a slash: not injected": {pod: aPod(own, app(withMount("own", "/etc/streamweir/plan/")))},
		"a mount above the plan's path: not injected":    {pod: aPod(own, app(withMount("own", "/etc/streamweir")))},
		"a mount over /etc: not injected":                {pod: aPod(own, app(withMount("own", "/etc")))},
		"a mount below the plan's path: not injected":    {pod: aPod(own, app(withMount("own", "/etc/streamweir/plan/more")))},
		"another volume with our name: not injected":     {pod: aPod(volume("streamweir-plan", configMapVolume("own")))},
		"another volume with our name that is no ConfigMap: not injected": {
			pod: aPod(volume("streamweir-plan", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})),
		},
	})
}

func TestInjectionBesideOtherContainers(t *testing.T) {
	want := &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}}
	java := func(name string) corev1.Container {
		return container(name, memory("64Mi", "1Gi"), withEnv("JDK_JAVA_OPTIONS", "-Xmx32m"), withMount("own", "/etc/own"))
	}
	own := volume("own", configMapVolume("own"))
	native := java("native")
	restartsAlways(&native)
	raised := []v1alpha1.PodInjection{anInjection(injectMemory("1Gi", "1536Mi", ""))}
	testInjections(t, map[string]injectionCase{
		"a sidecar is unchanged, also before the application": {pod: aPod(own, sidecar(java("sidecar"))), want: want},
		"a native sidecar is unchanged":                       {pod: aPod(own, initContainer(native)), want: want},
		"an init container is unchanged":                      {pod: aPod(own, initContainer(java("prepare"))), want: want},
		"a sidecar with the same limit is not raised": {
			injections: raised,
			pod:        aPod(own, sidecar(java("sidecar"))),
			want:       &injected{env: want.env, memory: "512Mi/1536Mi"},
		},
		"only an init container has the name: not injected": {
			pod: aPod(own, func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" }, initContainer(container(appContainer))),
		},
		"a mount of a sidecar at our path has no effect": {
			pod:  aPod(own, sidecar(container("sidecar", withMount("own", "/etc/streamweir/plan")))),
			want: want,
		},
	})
}

func TestInjectionOfMemory(t *testing.T) {
	env := []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}
	want := func(memory string) *injected { return &injected{env: env, memory: memory} }
	inject := func(forLimit, limit, request string) []v1alpha1.PodInjection {
		return []v1alpha1.PodInjection{anInjection(injectMemory(forLimit, limit, request))}
	}
	burstable := func(request string) *corev1.Pod { return aPod(app(memory(request, "1Gi"), cpu)) }

	testInjections(t, map[string]injectionCase{
		"no memory in the PodInjection: nothing changes": {pod: aPod(), want: want("512Mi/1Gi")},
		"the limit is raised, the request stays": {
			injections: inject("1Gi", "1536Mi", ""),
			pod:        aPod(),
			want:       want("512Mi/1536Mi"),
		},
		"the same limit in another notation": {
			injections: inject("1024Mi", "1536Mi", ""),
			pod:        aPod(),
			want:       want("512Mi/1536Mi"),
		},
		"a changed limit in the template is kept": {
			injections: inject("768Mi", "1536Mi", ""),
			pod:        aPod(),
			want:       want("512Mi/1Gi"),
		},
		"a pod without a limit stays without a limit": {
			injections: inject("1Gi", "1536Mi", ""),
			pod:        aPod(app(memory("512Mi", ""))),
			want:       want("512Mi/0"),
		},
		"a request is set if the PodInjection has one": {
			injections: inject("1Gi", "1536Mi", "900Mi"),
			pod:        aPod(),
			want:       want("900Mi/1536Mi"),
		},
		"a request as large as the limit": {
			injections: inject("1Gi", "1536Mi", "1536Mi"),
			pod:        aPod(),
			want:       want("1536Mi/1536Mi"),
		},
		"a limit below the request lowers the request": {
			injections: inject("1Gi", "256Mi", ""),
			pod:        aPod(),
			want:       want("256Mi/256Mi"),
		},
		"no request in the template: it is the limit and stays": {
			injections: inject("1Gi", "1536Mi", ""), pod: aPod(app(memory("", "1Gi"))), want: want("1Gi/1536Mi"),
		},
		"Guaranteed stays Guaranteed": {
			injections: inject("1Gi", "1536Mi", ""), pod: aPod(app(guaranteed("1Gi"))), want: want("1536Mi/1536Mi"),
		},
		"Guaranteed stays Guaranteed with any request of the PodInjection": {
			injections: inject("1Gi", "1536Mi", "700Mi"), pod: aPod(app(guaranteed("1Gi"))), want: want("1536Mi/1536Mi"),
		},
		"Guaranteed stays Guaranteed with a Guaranteed sidecar": {
			injections: inject("1Gi", "1536Mi", ""),
			pod:        aPod(app(guaranteed("1Gi")), sidecar(container("sidecar", guaranteed("1Gi")))),
			want:       want("1536Mi/1536Mi"),
		},
		"with a sidecar without limits the pod is Burstable and the request stays": {
			injections: inject("1Gi", "1536Mi", ""),
			pod:        aPod(app(guaranteed("1Gi")), sidecar(container("sidecar"))),
			want:       want("1Gi/1536Mi"),
		},
		"a request that would make the pod Guaranteed is not set": {
			injections: inject("1Gi", "1536Mi", "1536Mi"), pod: burstable("512Mi"), want: want("512Mi/1536Mi"),
		},
		"a limit that would make the pod Guaranteed is not set": {
			injections: inject("1Gi", "512Mi", ""), pod: burstable("512Mi"), want: want("512Mi/1Gi"),
		},
		"a limit below the template's is set for the proven image": {
			injections: inject("1Gi", "768Mi", ""), pod: aPod(), want: want("512Mi/768Mi"),
		},
		"a limit below the template's is not set for another image": {
			injections: inject("1Gi", "768Mi", ""),
			pod:        aPod(app(func(c *corev1.Container) { c.Image = "example.com/app:2" })),
			want:       want("512Mi/1Gi"),
		},
		"a pod with pod-level resources keeps its memory": {
			injections: inject("1Gi", "1536Mi", ""),
			pod: aPod(func(pod *corev1.Pod) {
				outer := container("outer", guaranteed("1Gi"))
				pod.Spec.Resources = &outer.Resources
			}),
			want: want("512Mi/1Gi"),
		},
	})
}

func TestInjectionOfTheAgent(t *testing.T) {
	inject := func(change ...func(*v1alpha1.PodInjectionSpec)) []v1alpha1.PodInjection {
		return []v1alpha1.PodInjection{anInjection(append([]func(*v1alpha1.PodInjectionSpec){withAgent}, change...)...)}
	}
	known := inject(ownOptions(""))
	both := agentOption + " " + options
	bare := &injected{env: []string{"JDK_JAVA_OPTIONS=" + both, noArenas, podUID}}
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	image := func(name string) func(*corev1.Pod) {
		return app(func(c *corev1.Container) { c.Image = name })
	}
	secret := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "options"}}}

	testInjections(t, map[string]injectionCase{
		"the agent comes before the plan": {injections: inject(), pod: aPod(), want: bare},
		"the container's own options follow, another agent among them": {
			injections: inject(),
			pod:        aPod(app(withEnv("JDK_JAVA_OPTIONS", "-javaagent:/otel.jar -ea"))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + both + " -javaagent:/otel.jar -ea", noArenas, podUID}},
		},
		"options that already contain agent and plan stay": {
			injections: inject(),
			pod:        aPod(app(withEnv("JDK_JAVA_OPTIONS", both+" -ea"))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + both + " -ea", noArenas, podUID}},
		},
		"options that contain the plan get the agent": {
			injections: inject(),
			pod:        aPod(app(withEnv("JDK_JAVA_OPTIONS", options+" -ea"))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + both + " -ea", noArenas, podUID}},
		},
		"every JVM of the container": {
			injections: inject(everyJVM),
			pod:        aPod(),
			want: &injected{env: []string{
				"JAVA_TOOL_OPTIONS=" + agentOption + " -XX:VMOptionsFile=/etc/streamweir/plan/jvm.options", noArenas, podUID,
			}},
		},
		"with envFrom without options": {
			injections: known,
			pod:        aPod(app(withEnvFrom(secret))),
			want:       &injected{env: []string{"JDK_JAVA_OPTIONS=" + both, podUID}},
		},
		"a mount of the user in the agent's folder: not injected": {
			injections: inject(),
			pod:        aPod(volume("own", emptyDir), app(withMount("own", v1alpha1.AgentMountPath))),
		},
		"a volume of the user with the agent's name: not injected": {
			injections: inject(),
			pod:        aPod(volume(v1alpha1.AgentVolume, emptyDir), app(withMount(v1alpha1.AgentVolume, "/somewhere"))),
		},
		"a ConfigMap of another agent with the agent's volume name: not injected": {
			injections: inject(),
			pod:        aPod(volume(v1alpha1.AgentVolume, configMapVolume("streamweir-agent-mine"))),
		},
		"without an agent its volume name is free": {
			pod:  aPod(volume(v1alpha1.AgentVolume, emptyDir), app(withMount(v1alpha1.AgentVolume, "/somewhere"))),
			want: &injected{env: []string{"JDK_JAVA_OPTIONS=" + options, noArenas, podUID}},
		},
		"without an agent the plan's folder must still be free": {
			pod: aPod(volume(v1alpha1.AgentVolume, emptyDir), app(withMount(v1alpha1.AgentVolume, v1alpha1.AgentMountPath))),
		},
		"an image that failed to start: not injected": {
			injections: inject(excludedImages("example.com/app:0", appImage)),
			pod:        aPod(image(appImage)),
		},
		"a new image is injected again": {
			injections: inject(excludedImages("example.com/app:0")), pod: aPod(image("example.com/app:2")), want: bare,
		},
		"the image of another container has no effect": {
			injections: inject(excludedImages("example.com/sidecar:1")), pod: aPod(sidecar(container("sidecar"))), want: bare,
		},
	})
}
