package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"devlet.dev/peers/kubernetes/program"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/e2e/dra/test-driver/app"
)

// What of the driver can be stopped and started alone.
const (
	registrar = "registrar"
	service   = "service"
)

// testDriver is Kubernetes' own, in two parts as its node tests run it, so that each can stop alone. Claims and health
// are known to the service.
type testDriver struct {
	name, node, plugins, registry, cdi string
	uid                                types.UID
	v1, v1beta1, metadata              bool
	devices                            int
	client                             kubernetes.Interface
	faults                             *faults

	mutex sync.Mutex
	parts map[string]*part
}

type part struct {
	*app.ExamplePlugin
	undo map[string]func() // of its hooks that are in use
}

func runTestDriver(arguments []string) error {
	d := &testDriver{faults: newFaults(), parts: map[string]*part{}}
	flags := flag.NewFlagSet("test-driver", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "of the API server")
	flags.StringVar(&d.name, "drivername", "test-driver.cdi.k8s.io", "of the driver")
	flags.StringVar(&d.node, "node-name", "", "that it runs on")
	flags.StringVar(&d.registry, "plugin-registration-path", kubeletplugin.KubeletRegistryDir, "where it is found")
	flags.StringVar(&d.plugins, "datadir", kubeletplugin.KubeletPluginsDir, "its own directory is in here")
	flags.StringVar(&d.cdi, "cdi-dir", "/var/run/cdi", "for CDI files")
	flags.IntVar(&d.devices, "num-devices", 4, "to publish")
	flags.BoolVar(&d.metadata, "enable-device-metadata", false, "write metadata files")
	uid := flags.String("uid", "", "of its pod: makes it one of several instances, as in a rolling update")
	flags.BoolVar(&d.v1, "v1", true, "serve v1.DRAPlugin")
	flags.BoolVar(&d.v1beta1, "v1beta1", true, "serve v1beta1.DRAPlugin")
	control := flags.String("control", "", "the socket that takes commands")
	stopped := flags.Bool("stopped", false, "wait for the command to start")
	verbosity := flags.String("v", "0", "of the log")
	if err := program.Parse(flags, arguments, "uid"); err != nil {
		return err
	}
	if err := program.Within("num-devices", d.devices, 0, resourceapi.ResourceSliceMaxDevices); err != nil {
		return err
	}
	if err := logWith(*verbosity); err != nil {
		return program.Misused("--v: %w", err)
	}
	d.uid = types.UID(*uid)
	return d.run(*kubeconfig, *control, *stopped)
}

func logWith(verbosity string) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", verbosity)
}

func (d *testDriver) run(kubeconfig, control string, stopped bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	if d.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	for _, directory := range []string{d.cdi, filepath.Join(d.plugins, d.name)} {
		if err := os.MkdirAll(directory, 0o750); err != nil {
			return err
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	defer d.stop(registrar, service)
	listener, err := listen(control)
	if err != nil {
		return err
	}
	defer listener.Close()
	if !stopped {
		if err := d.start(ctx, service, registrar); err != nil {
			return err
		}
	}
	go program.Obey(listener, func(c command) (any, error) { return d.do(ctx, c) })
	<-ctx.Done()
	return nil
}

func (d *testDriver) start(ctx context.Context, names ...string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, name := range names {
		if d.parts[name] != nil {
			return fmt.Errorf("the %s runs already", name)
		}
		plugin, err := app.StartPlugin(ctx, d.cdi, d.name, d.client, d.node, d.files(name), d.options(name)...)
		if err != nil {
			return err
		}
		d.parts[name] = &part{plugin, map[string]func(){}}
	}
	return nil
}

// files are the real ones; what is published is the service's business.
func (d *testDriver) files(name string) app.FileOperations {
	if name != service {
		return app.FileOperations{}
	}
	devices := make([]resourceapi.Device, d.devices)
	for i := range devices {
		devices[i].Name = fmt.Sprintf("device-%02d", i)
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
	resources := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
	return app.FileOperations{DriverResources: &resources}
}

func (d *testDriver) options(name string) []any {
	return []any{
		app.Options{EnableHealthService: true},
		kubeletplugin.PluginDataDirectoryPath(filepath.Join(d.plugins, d.name)),
		kubeletplugin.RegistrarDirectoryPath(d.registry),
		kubeletplugin.RollingUpdate(d.uid),
		kubeletplugin.NodeV1(d.v1),
		kubeletplugin.NodeV1beta1(d.v1beta1),
		kubeletplugin.EnableDeviceMetadata(d.metadata),
		kubeletplugin.CDIDirectory(d.cdi),
		kubeletplugin.RegistrationService(name == registrar),
		kubeletplugin.DRAService(name == service),
		kubeletplugin.GRPCInterceptor(d.faults.unary),
		kubeletplugin.GRPCStreamInterceptor(d.faults.stream),
	}
}

// stop takes the hooks back afterwards: what waits for them has nobody to answer then, but would wait for ever.
func (d *testDriver) stop(names ...string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, name := range names {
		if p := d.parts[name]; p != nil {
			delete(d.parts, name)
			p.Stop()
			for _, undo := range p.undo {
				undo()
			}
		}
	}
}

func (d *testDriver) part(name string) (*part, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if p := d.parts[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("the %s does not run", name)
}
