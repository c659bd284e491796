package main

import (
	"context"
	"errors"
	"reflect"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// anyShare stands for the random share IDs in complete results.
const anyShare = types.UID("00000000-0000-0000-0000-000000000000")

type solution struct {
	Name        string       `json:"name"`
	Answers     []nodeAnswer `json:"answers"`
	Seconds     *float64     `json:"seconds,omitempty"`
	SearchCalls *int64       `json:"searchCalls,omitempty"` // of all nodes; only some variants count them
}

type nodeAnswer struct {
	Node        string                         `json:"node"`
	Outcome     string                         `json:"outcome"` // fit, no-fit or error
	Allocations [][]device                     `json:"allocations,omitempty"`
	Error       string                         `json:"error,omitempty"`
	Reason      string                         `json:"reason,omitempty"` // of a no-fit that came as an error of the node
	Results     []resourceapi.AllocationResult `json:"results,omitempty"`
}

type device struct {
	Request          string                                          `json:"request"`
	Driver           string                                          `json:"driver"`
	Pool             string                                          `json:"pool"`
	Device           string                                          `json:"device"`
	AdminAccess      bool                                            `json:"adminAccess,omitempty"`
	ConsumedCapacity map[resourceapi.QualifiedName]resource.Quantity `json:"consumedCapacity,omitempty"`
	Shared           bool                                            `json:"shared,omitempty"`
}

// solve asks one allocator for each node in turn.
func (w *world) solve(ctx context.Context, full, bench bool) (*solution, error) {
	start := time.Now()
	allocator, err := w.allocator(ctx)
	if err != nil {
		return nil, err
	}
	s := &solution{Name: w.Name, Answers: make([]nodeAnswer, 0, len(w.Nodes))}
	for _, node := range w.Nodes {
		results, err := allocator.Allocate(ctx, node, w.Claims)
		s.Answers = append(s.Answers, newNodeAnswer(node.Name, results, err, full))
	}
	if bench {
		s.Seconds = ptr.To(time.Since(start).Seconds())
	}
	if full {
		s.SearchCalls = searchCalls(allocator)
	}
	return s, nil
}

func (w *world) allocator(ctx context.Context) (structured.Allocator, error) {
	return structured.NewAllocator(ctx, w.features, w.state.copied(), w.Classes, w.Slices, w.celCache)
}

func newNodeAnswer(node string, results []resourceapi.AllocationResult, err error, full bool) nodeAnswer {
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode) && full:
		return nodeAnswer{Node: node, Outcome: "no-fit", Reason: err.Error()}
	case err == nil && results == nil, errors.Is(err, structured.ErrFailedAllocationOnNode):
		return nodeAnswer{Node: node, Outcome: "no-fit"}
	case err != nil:
		return nodeAnswer{Node: node, Outcome: "error", Error: err.Error()}
	}
	a := nodeAnswer{Node: node, Outcome: "fit"}
	for _, result := range results {
		devices := make([]device, 0, len(result.Devices.Results))
		for i := range result.Devices.Results {
			devices = append(devices, newDevice(&result.Devices.Results[i]))
		}
		a.Allocations = append(a.Allocations, devices)
	}
	if full {
		a.Results = results
	}
	return a
}

// newDevice also makes the share ID of the result the same for every run.
func newDevice(r *resourceapi.DeviceRequestAllocationResult) device {
	shared := r.ShareID != nil
	if shared {
		r.ShareID = ptr.To(anyShare)
	}
	return device{r.Request, r.Driver, r.Pool, r.Device, ptr.Deref(r.AdminAccess, false), r.ConsumedCapacity, shared}
}

// searchCalls reads GetStats by reflection: its result type is internal, so that no interface here can name it.
func searchCalls(allocator structured.Allocator) *int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return nil
	}
	return ptr.To(method.Call(nil)[0].FieldByName("NumAllocateOneInvocations").Int())
}
