// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

// Names of config/default.
const (
	operatorNamespace  = "streamweir-system"
	operatorAccount    = "streamweir-controller-manager"
	operatorUser       = "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
	metricsReaderRole  = "streamweir-metrics-reader"
	tokenLifetime      = 24 * 60 * 60 // seconds
	scraperAccount     = "scraper"
	scraperNamespace   = "default"
	kubeconfigFileName = "kubeconfig"
)

// cluster is a control plane with config/default and an audit log of the operator's requests.
type cluster struct {
	tb     testing.TB
	folder string
	config *rest.Config
	kinds  *runtime.Scheme
	// admin writes StreamApps, pods writes everything else, in protobuf.
	admin client.Client
	pods  kubernetes.Interface
	audit *auditLog
	// kubeconfig is the operator's, scraper the token to read its metrics with.
	kubeconfig, scraper string
}

// newCluster starts a control plane that ends with the test.
func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{tb: tb, folder: tb.TempDir(), kinds: runtime.NewScheme()}
	policy := filepath.Join(c.folder, "policy.yaml")
	log := filepath.Join(c.folder, "audit.log")
	c.check(os.WriteFile(policy, []byte(auditPolicy), 0o600))
	environment, err := envtestutil.StartShippedWithAudit(policy, log)
	c.check(err)
	tb.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			tb.Error(err)
		}
	})
	c.audit = openAudit(tb, log)
	c.config = rest.CopyConfig(environment.Config)
	c.config.QPS = -1
	c.check(errors.Join(scheme.AddToScheme(c.kinds), v1alpha1.AddToScheme(c.kinds)))
	c.admin, err = client.New(c.config, client.Options{Scheme: c.kinds})
	c.check(err)
	protobuf := rest.CopyConfig(c.config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	c.pods, err = kubernetes.NewForConfig(protobuf)
	c.check(err)
	c.createScraper()
	c.writeKubeconfig()
	return c
}

// check ends the test after an error.
func (c *cluster) check(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// createScraper creates an account that may read the operator's metrics.
func (c *cluster) createScraper() {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scraperNamespace, Name: scraperAccount}}
	c.check(c.admin.Create(c.tb.Context(), account))
	c.check(c.admin.Create(c.tb.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: scraperAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReaderRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: scraperNamespace, Name: scraperAccount}},
	}))
	c.scraper = c.token(scraperNamespace, scraperAccount)
}

// token returns a token of a service account.
func (c *cluster) token(namespace, account string) string {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime))}}
	issued, err := c.pods.CoreV1().ServiceAccounts(namespace).CreateToken(c.tb.Context(), account, request, metav1.CreateOptions{})
	c.check(err)
	return issued.Status.Token
}

// writeKubeconfig writes the operator's kubeconfig.
func (c *cluster) writeKubeconfig() {
	c.kubeconfig = filepath.Join(c.folder, kubeconfigFileName)
	c.check(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"scale": {Server: c.config.Host, CertificateAuthorityData: c.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"operator": {Token: c.token(operatorNamespace, operatorAccount)}},
		Contexts:       map[string]*clientcmdapi.Context{"scale": {Cluster: "scale", AuthInfo: "operator"}},
		CurrentContext: "scale",
	}, c.kubeconfig))
}
