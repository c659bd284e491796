package main

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// allocatedState is kept as claims are allocated and copied for every attempt, as the scheduler's DRA plugin does.
type allocatedState struct {
	now    structured.AllocatedState
	shares bool // without the feature a share is a whole device
}

func newAllocatedState(shares bool) *allocatedState {
	return &allocatedState{shares: shares, now: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
}

func (s *allocatedState) add(allocation *resourceapi.AllocationResult) {
	if allocation == nil {
		return
	}
	for _, r := range allocation.Devices.Results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case ptr.Deref(r.AdminAccess, false): // takes nothing
		case !s.shares || r.ShareID == nil:
			s.now.AllocatedDevices.Insert(id)
		default:
			s.now.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			if r.ConsumedCapacity != nil {
				s.now.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			}
		}
	}
}

func (s *allocatedState) copied() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         maps.Clone(s.now.AllocatedDevices),
		AllocatedSharedDeviceIDs: maps.Clone(s.now.AllocatedSharedDeviceIDs),
		AggregatedCapacity:       s.now.AggregatedCapacity.Clone(),
	}
}
