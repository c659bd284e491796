package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path"
	"sync"
	"syscall"

	"devlet.dev/peers/kubernetes/program"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// runtimeLog has a line of JSON for each container that was made.
type runtimeLog struct {
	mutex sync.Mutex
	file  *os.File
}

// runRuntime serves Kubernetes' own fake runtime, and writes down the containers.
func runRuntime(arguments []string) error {
	flags := flag.NewFlagSet("runtime", flag.ExitOnError)
	socket := flags.String("socket", "", "to serve on")
	containers := flags.String("containers", "", "the file that gets the configuration of each container, a line each")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	file, err := os.OpenFile(*containers, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(*socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	log := &runtimeLog{file: file}
	server := grpc.NewServer(grpc.UnaryInterceptor(log.unary))
	defer server.Stop()
	runtime := fake.NewFakeRemoteRuntime()
	conditions := []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}
	runtime.RuntimeService.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: conditions}
	runtime.ImageService.SetFakeImageSize(1)
	runtimeapi.RegisterRuntimeServiceServer(server, runtime)
	runtimeapi.RegisterImageServiceServer(server, runtime)
	go func() { _ = server.Serve(listener) }()
	fmt.Println("serving", *socket)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	<-ctx.Done()
	return nil
}

func (l *runtimeLog) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if wanted, ok := request.(*runtimeapi.CreateContainerRequest); ok {
		if err := l.write(wanted); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(info.FullMethod), err)
		}
	}
	return handler(ctx, request)
}

func (l *runtimeLog) write(request *runtimeapi.CreateContainerRequest) error {
	var message proto.Message = request
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, err = l.file.Write(append(text, '\n'))
	return err
}
