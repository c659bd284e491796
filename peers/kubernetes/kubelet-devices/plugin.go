package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"devlet.dev/peers/kubernetes/program"
	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	kubeletSocket   = "kubelet.sock"
	registerTimeout = 10 * time.Second
	mostDevices     = 200_000
)

// devicePlugin answers as fast as it can: what is measured with it is the other side. (The kubelet's own Stub goes
// through all its devices and writes a line for every Allocate.)
type devicePlugin struct {
	api.UnimplementedDevicePluginServer
	directory string
	resource  string
	devices   []*api.Device
}

func runPlugin(arguments []string) error {
	flags := flag.NewFlagSet("plugin", flag.ExitOnError)
	directory := flags.String("directory", "", "where kubelet.sock is, or will be")
	resource := flags.String("resource", "", "its name, as in example.com/gpu")
	count := flags.Int("devices", 8, "how many; they are called dev-0, dev-1, …")
	numa := flags.String("numa", "none", "NUMA nodes that the devices are spread over, as in 0,1")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	if err := program.Within("devices", *count, 0, mostDevices); err != nil {
		return err
	}
	devices, err := makeDevices(*count, *numa)
	if err != nil {
		return program.Misused("%w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return (&devicePlugin{directory: *directory, resource: *resource, devices: devices}).run(ctx)
}

func deviceID(number int) string { return fmt.Sprintf("dev-%d", number) }

func makeDevices(count int, numa string) ([]*api.Device, error) {
	var nodes []int64
	if numa != "none" {
		for text := range strings.SplitSeq(numa, ",") {
			node, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("--numa is %q, expected none or numbers as in 0,1", numa)
			}
			nodes = append(nodes, int64(node))
		}
	}
	devices := make([]*api.Device, count)
	for i := range devices {
		devices[i] = &api.Device{ID: deviceID(i), Health: api.Healthy}
		if nodes != nil {
			node := &api.NUMANode{ID: nodes[i%len(nodes)]}
			devices[i].Topology = &api.TopologyInfo{Nodes: []*api.NUMANode{node}}
		}
	}
	return devices, nil
}

// run serves and registers, and does both anew whenever kubelet.sock is made anew: a kubelet that starts removes the
// sockets of all plugins.
func (p *devicePlugin) run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(p.directory); err != nil {
		return fmt.Errorf("%s: %w", p.directory, err)
	}
	kubelet := filepath.Join(p.directory, kubeletSocket)
	if _, err := os.Stat(kubelet); err != nil {
		fmt.Println("waiting for", kubelet)
		if err := created(ctx, watcher, kubelet); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	for {
		server, err := p.serve()
		if err != nil {
			return err
		}
		if err := p.register(ctx, kubelet); err != nil {
			fmt.Fprintf(os.Stderr, "kubelet-devices: plugin: %s was not registered: %v\n", p.resource, err)
		} else {
			fmt.Println("registered", p.resource)
		}
		err = created(ctx, watcher, kubelet)
		server.Stop()
		if err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func created(ctx context.Context, watcher *fsnotify.Watcher, path string) error {
	for {
		select {
		case event := <-watcher.Events:
			if event.Name == path && event.Has(fsnotify.Create) {
				return nil
			}
		case err := <-watcher.Errors:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *devicePlugin) socket() string {
	return strings.ReplaceAll(p.resource, "/", "_") + ".sock"
}

func (p *devicePlugin) serve() (*grpc.Server, error) {
	path := filepath.Join(p.directory, p.socket())
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func (p *devicePlugin) register(ctx context.Context, kubelet string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: p.socket(), ResourceName: p.resource}
	// The file is there a moment before anybody listens.
	_, err = api.NewRegistrationClient(conn).Register(ctx, request, grpc.WaitForReady(true))
	return err
}

func (p *devicePlugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *devicePlugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *devicePlugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, grant(container.DevicesIds))
	}
	return response, nil
}

func grant(ids []string) *api.ContainerAllocateResponse {
	granted := &api.ContainerAllocateResponse{Envs: map[string]string{}}
	for _, id := range ids {
		path := "/dev/example/" + id
		granted.Envs["EXAMPLE_"+strings.ToUpper(strings.ReplaceAll(id, "-", "_"))] = path
		node := &api.DeviceSpec{ContainerPath: path, HostPath: path, Permissions: "rw"}
		granted.Devices = append(granted.Devices, node)
		state := "/run/example/" + id
		granted.Mounts = append(granted.Mounts, &api.Mount{ContainerPath: state, HostPath: state, ReadOnly: true})
	}
	return granted
}
