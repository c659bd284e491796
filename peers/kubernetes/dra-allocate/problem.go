package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"devlet.dev/peers/kubernetes/program"
)

// problem is taken as it is: nobody fills in the defaults of the API.
type problem struct {
	Name      string                       `json:"name"`
	Mode      string                       `json:"mode"`
	Features  []string                     `json:"features"`
	Nodes     []*corev1.Node               `json:"nodes"`
	Classes   classes                      `json:"classes"`
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Allocated []*resourceapi.ResourceClaim `json:"allocated"`
	Claims    []*resourceapi.ResourceClaim `json:"claims"`
}

// world is a problem in the memory of a scheduler.
type world struct {
	*problem
	features structured.Features
	state    *allocatedState
	celCache *dracel.Cache
}

func newWorld(p *problem, defaults string) (*world, error) {
	names := p.Features
	if names == nil && defaults != "" {
		names = strings.Split(defaults, ",")
	}
	features, err := parseFeatures(names)
	if err != nil {
		return nil, err
	}
	w := &world{problem: p, features: features, state: newAllocatedState(features.ConsumableCapacity)}
	w.celCache = dracel.NewCache(10, dracel.Features{ // the scheduler's size
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
	for _, claim := range p.Allocated {
		w.state.add(claim.Status.Allocation)
	}
	return w, nil
}

// parseFeatures starts with everything on if the first name has a minus, or if there are no names.
func parseFeatures(names []string) (structured.Features, error) {
	var f structured.Features
	known := map[string]*bool{
		"AdminAccess":            &f.AdminAccess,
		"ConsumableCapacity":     &f.ConsumableCapacity,
		"DeviceBindingAndStatus": &f.DeviceBindingAndStatus,
		"DeviceTaints":           &f.DeviceTaints,
		"ListTypeAttributes":     &f.ListTypeAttributes,
		"PartitionableDevices":   &f.PartitionableDevices,
		"PrioritizedList":        &f.PrioritizedList,
	}
	for _, on := range known {
		*on = len(names) == 0 || strings.HasPrefix(names[0], "-")
	}
	for _, name := range names {
		plain, off := strings.CutPrefix(name, "-")
		if known[plain] == nil {
			return f, program.Misused("no feature %q", plain)
		}
		*known[plain] = !off
	}
	return f, nil
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return c, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, errors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}
