// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestAnswerOfAStatus(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Reason", Message: "message"}
	}
	fits := condition(v1alpha1.ConditionFits, metav1.ConditionTrue)
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       Verdict
	}{
		"both True":          {[]metav1.Condition{fits, condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue)}, VerdictFits},
		"CascadeSafe False":  {[]metav1.Condition{fits, condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse)}, VerdictDoesNotFit},
		"CascadeSafe absent": {[]metav1.Condition{fits}, VerdictUnknown},
		"Fits Unknown":       {[]metav1.Condition{condition(v1alpha1.ConditionFits, metav1.ConditionUnknown)}, VerdictUnknown},
		"no conditions":      {nil, VerdictUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
				app.Status = v1alpha1.StreamAppStatus{
					ObservedGeneration: 1, Conditions: tc.conditions, Tasks: new(int32(12)), PodFailuresTolerated: new(int32(1)),
					RequiredLimit: testobjects.Memory("2157Mi"),
					DivergentPods: []v1alpha1.PodStatus{{Name: "orders-0", RequiredLimit: testobjects.Memory("1Gi")}},
				}
			})
			answer := AnswerOf(app)
			if answer.Verdict != tc.want || answer.Tasks != 12 || answer.PodFailuresTolerated != 1 || answer.RequiredLimit.String() != "2157Mi" {
				t.Errorf("%+v, want %s for 12 tasks", answer, tc.want)
			}
			if len(answer.Pods) != 1 || answer.Pods[0].RequiredLimit.String() != "1Gi" {
				t.Errorf("pods %+v, want the divergent one", answer.Pods)
			}
			if tc.want == VerdictDoesNotFit && !strings.Contains(strings.Join(answer.Missing, ";"), "CascadeSafe is False (Reason): message") {
				t.Errorf("missing %q, want the message of the condition", answer.Missing)
			}
			if len(answer.Warnings) > 0 {
				t.Errorf("warnings %q of an up-to-date status", answer.Warnings)
			}
			app.Generation++
			if later := AnswerOf(app); !strings.Contains(warnings(later), "has changed since the operator wrote this status") {
				t.Errorf("warnings %q of an outdated status", later.Warnings)
			}
		})
	}
}
