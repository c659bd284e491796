package main

import (
	"context"
	"fmt"
	"time"

	"devlet.dev/peers/kubernetes/program"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
)

const (
	askTimeout      = 10 * time.Second
	answerSizeLimit = 64 << 20
)

func podResources(arguments []string) error {
	wanted := map[string]int{"list": 2, "allocatable": 2, "get": 4, "list-v1alpha1": 2}
	if len(arguments) < 2 || len(arguments) != wanted[arguments[1]] {
		return program.Misused("expected SOCKET list | allocatable | get NAMESPACE NAME | list-v1alpha1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	answer, err := ask(ctx, "unix://"+arguments[0], arguments[1], arguments[2:])
	if err != nil {
		return err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(answer)
	fmt.Println(string(text))
	return err
}

func ask(ctx context.Context, socket, question string, names []string) (proto.Message, error) {
	if question == "list-v1alpha1" {
		client, conn, err := podresources.GetV1alpha1Client(socket, askTimeout, answerSizeLimit)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return client.List(ctx, &v1alpha1.ListPodResourcesRequest{})
	}
	client, conn, err := podresources.GetV1Client(socket, askTimeout, answerSizeLimit)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	switch question {
	case "list":
		return client.List(ctx, &v1.ListPodResourcesRequest{})
	case "allocatable":
		return client.GetAllocatableResources(ctx, &v1.AllocatableResourcesRequest{})
	default:
		return client.Get(ctx, &v1.GetPodResourcesRequest{PodNamespace: names[0], PodName: names[1]})
	}
}
