package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"devlet.dev/peers/kubernetes/kubelet"
	"devlet.dev/peers/kubernetes/program"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// node has the pods that it was told of, as the kubelet has those of its API server.
type node struct {
	devices *devicemanager.ManagerImpl
	claims  *dra.Manager

	mutex sync.Mutex
	pods  map[types.UID]*corev1.Pod
}

func runNode(arguments []string) error {
	flags := flag.NewFlagSet("node", flag.ExitOnError)
	root := flags.String("root", "", "the kubelet's directory, the one that is mounted at /var/lib/kubelet")
	kubeconfig := flags.String("kubeconfig", "", "of the API server with the claims; without it there is no DRA manager")
	name := flags.String("node-name", "n1", "the node's")
	control := flags.String("control", "", "the socket that takes commands")
	verbosity := flags.String("v", "4", "of the log")
	if err := program.Parse(flags, arguments, "kubeconfig"); err != nil {
		return err
	}
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	if err := logging.Set("v", *verbosity); err != nil {
		return program.Misused("--v: %w", err)
	}
	if err := sameDirectory(filepath.Join(*root, "device-plugins"), pluginapi.DevicePluginPath); err != nil {
		return program.Misused("%w", err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	n := &node{pods: map[types.UID]*corev1.Pod{}}
	return n.run(ctx, *root, *kubeconfig, *name, *control)
}

// sameDirectory: the kubelet's device manager knows one directory only.
func sameDirectory(given, builtIn string) error {
	a, err := os.Stat(given)
	if err != nil {
		return err
	}
	b, err := os.Stat(builtIn)
	if err != nil || !os.SameFile(a, b) {
		return fmt.Errorf("%s is not mounted at %s: use a mount namespace", given, builtIn)
	}
	return nil
}

// run is the order in which a kubelet starts them: those who handle plugins, then who looks for plugins.
func (n *node) run(ctx context.Context, root, kubeconfig, name, control string) error {
	plugins := pluginmanager.NewPluginManager(filepath.Join(root, "plugins_registry"), &record.FakeRecorder{})
	if err := n.startDevices(); err != nil {
		return err
	}
	defer func() { _ = n.devices.Stop(klog.Background()) }()
	plugins.AddHandler(registration.DevicePlugin, n.devices.GetWatcherHandler())
	if kubeconfig != "" {
		if err := n.startClaims(ctx, root, kubeconfig, name); err != nil {
			return err
		}
		plugins.AddHandler(registration.DRAPlugin, n.claims.GetWatcherHandler())
	}
	if err := os.Remove(control); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", control)
	if err != nil {
		return err
	}
	defer listener.Close()
	go program.Obey(listener, func(c command) (any, error) { return n.do(ctx, c) })
	plugins.Run(ctx, kubelet.Ready{}, ctx.Done())
	return nil
}

func (n *node) startDevices() error {
	manager, err := devicemanager.NewManagerImpl(nil, kubelet.NoAffinity{})
	if err != nil {
		return err
	}
	n.devices = manager
	return manager.Start(klog.Background(), n.active, kubelet.Ready{}, containermap.NewContainerMap(), sets.New[string]())
}

func (n *node) startClaims(ctx context.Context, root, kubeconfig, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if n.claims, err = dra.NewManager(klog.Background(), client, root); err != nil {
		return err
	}
	getNode := func(ctx context.Context) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}
	return n.claims.Start(ctx, n.active, getNode, kubelet.Ready{})
}

func (n *node) active() []*corev1.Pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	pods := make([]*corev1.Pod, 0, len(n.pods))
	for _, pod := range n.pods {
		pods = append(pods, pod)
	}
	return pods
}
