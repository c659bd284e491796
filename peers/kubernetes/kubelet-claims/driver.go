package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"devlet.dev/peers/kubernetes/program"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
	drabeta "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/state"
)

const (
	poolName    = "pool"
	requestName = "gpu"
)

// fastDriver answers as fast as it can and leaves nothing behind: what is measured with it is the other side. (A driver
// of the helper package asks the API server for each claim, and takes one call at a time.)
type fastDriver struct {
	draapi.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	name     string
	endpoint string
}

func runDriver(arguments []string) error {
	flags := flag.NewFlagSet("driver", flag.ExitOnError)
	name := flags.String("name", "bench.example.com", "of the driver")
	socket := flags.String("socket", "", "to prepare and unprepare on")
	registrar := flags.String("registration-socket", "", "to be found on")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	d := &fastDriver{name: *name, endpoint: *socket}
	service, err := serve(*socket, func(server *grpc.Server) {
		draapi.RegisterDRAPluginServer(server, d)
		drabeta.RegisterDRAPluginServer(server, drabeta.V1ServerWrapper{DRAPluginServer: d})
	})
	if err != nil {
		return err
	}
	defer service.Stop()
	greeter, err := serve(*registrar, func(server *grpc.Server) { registration.RegisterRegistrationServer(server, d) })
	if err != nil {
		return err
	}
	defer greeter.Stop()
	fmt.Println("serving", d.name)
	<-ctx.Done()
	return nil
}

func serve(path string, register func(*grpc.Server)) (*grpc.Server, error) {
	listener, err := listen(path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

// listen takes the place of a socket that was left behind.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return net.Listen("unix", path)
}

func (d *fastDriver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DRAPlugin, Name: d.name, Endpoint: d.endpoint,
		SupportedVersions: []string{draapi.DRAPluginService, drabeta.DRAPluginService},
	}, nil
}

func (d *fastDriver) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("registered", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *fastDriver) NodePrepareResources(
	_ context.Context, request *draapi.NodePrepareResourcesRequest,
) (*draapi.NodePrepareResourcesResponse, error) {
	claims := make(map[string]*draapi.NodePrepareResourceResponse, len(request.Claims))
	for _, claim := range request.Claims {
		given := prepared(d.name, types.UID(claim.Uid))
		claims[claim.Uid] = &draapi.NodePrepareResourceResponse{Devices: []*draapi.Device{{
			PoolName: given.PoolName, DeviceName: given.DeviceName,
			RequestNames: given.RequestNames, CdiDeviceIds: given.CDIDeviceIDs,
		}}}
	}
	return &draapi.NodePrepareResourcesResponse{Claims: claims}, nil
}

func (d *fastDriver) NodeUnprepareResources(
	_ context.Context, request *draapi.NodeUnprepareResourcesRequest,
) (*draapi.NodeUnprepareResourcesResponse, error) {
	claims := make(map[string]*draapi.NodeUnprepareResourceResponse, len(request.Claims))
	for _, claim := range request.Claims {
		claims[claim.Uid] = &draapi.NodeUnprepareResourceResponse{}
	}
	return &draapi.NodeUnprepareResourcesResponse{Claims: claims}, nil
}

// prepared is what the driver answers for a claim.
func prepared(driver string, claim types.UID) state.Device {
	return state.Device{
		PoolName: poolName, DeviceName: "device-" + string(claim), RequestNames: []string{requestName},
		CDIDeviceIDs: []string{fmt.Sprintf("%s/gpu=%s", driver, claim)},
	}
}
