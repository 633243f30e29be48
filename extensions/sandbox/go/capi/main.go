// The infrastructure provider of Cluster API's own tests, with its in-memory backend only: its controllers and webhooks in
// a manager of ours. The manager they come with has fixed ports, so that a machine could have one sandbox only, and asks for
// containers.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/remote"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/test/infrastructure/container"
	infrav1beta1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/cluster-api/test/infrastructure/docker/controllers"
	"sigs.k8s.io/cluster-api/test/infrastructure/docker/webhooks"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	name    = "sandbox-in-memory-provider"
	address = "127.0.0.1"
)

var (
	health      = pflag.String("health-addr", address+":9440", "where its health is asked for")
	webhookPort = pflag.Int("webhook-port", 9443, "the port of its webhooks")
	certFolder  = pflag.String("webhook-cert-dir", "", "the folder with tls.crt and tls.key of its webhooks")
	firstPort   = pflag.Int32("first-port", inmemoryserver.DefaultMinPort, "its own port; the clusters' API servers have those that follow")
	lastPort    = pflag.Int32("last-port", inmemoryserver.DefaultMaxPort, "the last port for a cluster's API server")
)

func main() {
	feature.MutableGates.AddFlag(pflag.CommandLine)
	pflag.CommandLine.AddGoFlagSet(flag.CommandLine)
	pflag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		klog.ErrorS(err, "Ended")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme, err := schemeOf(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, infrav1beta1.AddToScheme, infrav1.AddToScheme)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: *health,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		WebhookServer:          webhook.NewServer(webhook.Options{Host: address, Port: *webhookPort, CertDir: *certFolder}),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("webhook", manager.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	if err := addControllers(ctx, manager); err != nil {
		return err
	}
	if err := addWebhooks(manager); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func addControllers(ctx context.Context, manager ctrl.Manager) error {
	clusters, err := inMemory(ctx)
	if err != nil {
		return err
	}
	server, err := inmemoryserver.NewWorkloadClustersMux(
		clusters, address, inmemoryserver.CustomPorts{DebugPort: *firstPort, MinPort: *firstPort + 1, MaxPort: *lastPort})
	if err != nil {
		return err
	}
	// The controllers want one; the in-memory backend never calls it.
	containers, err := container.NewDockerClient()
	if err != nil {
		return err
	}
	connections, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: manager.GetClient(),
		Client:       clustercache.ClientOptions{UserAgent: remote.DefaultClusterAPIUserAgent(name)},
	}, controller.Options{MaxConcurrentReconciles: 10})
	if err != nil {
		return err
	}
	ours := manager.GetClient()
	options := controller.Options{MaxConcurrentReconciles: 10}
	if err := (&controllers.DevClusterReconciler{
		Client: ours, ContainerRuntime: containers, InMemoryManager: clusters, APIServerMux: server,
	}).SetupWithManager(ctx, manager, options); err != nil {
		return err
	}
	return (&controllers.DevMachineReconciler{
		Client: ours, ContainerRuntime: containers, ClusterCache: connections, InMemoryManager: clusters, APIServerMux: server,
	}).SetupWithManager(ctx, manager, options)
}

// inMemory is what the clusters consist of: their machines, and the objects in their API servers.
func inMemory(ctx context.Context) (inmemoryruntime.Manager, error) {
	scheme, err := schemeOf(
		cloudv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
		apiextensionsv1.AddToScheme, policyv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	clusters := inmemoryruntime.NewManager(scheme)
	return clusters, clusters.Start(ctx)
}

func addWebhooks(manager ctrl.Manager) error {
	for _, each := range []interface{ SetupWebhookWithManager(ctrl.Manager) error }{
		&webhooks.DevCluster{}, &webhooks.DevClusterTemplate{}, &webhooks.DevMachine{}, &webhooks.DevMachineTemplate{},
	} {
		if err := each.SetupWebhookWithManager(manager); err != nil {
			return err
		}
	}
	return nil
}

func schemeOf(parts ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range parts {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
