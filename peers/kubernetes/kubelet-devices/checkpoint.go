package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"devlet.dev/peers/kubernetes/program"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
)

const checkpointName = "kubelet_internal_checkpoint"

// document is a checkpoint as this program prints and reads it. Null and empty stay apart, as they do in the file.
type document struct {
	Entries    []entry             `json:"entries"`
	Registered map[string][]string `json:"registered"`
}

type entry struct {
	Pod       string              `json:"pod"`
	Container string              `json:"container"`
	Resource  string              `json:"resource"`
	Devices   map[string][]string `json:"devices"` // by NUMA node
	Response  []byte              `json:"response"`
}

func readCheckpoints(directories []string) error {
	if len(directories) == 0 {
		return program.Misused("expected DIR...")
	}
	var failed error
	encoder := json.NewEncoder(os.Stdout)
	for _, directory := range directories {
		read, err := readCheckpoint(directory)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", directory, err))
		}
		if err := encoder.Encode(read); err != nil {
			return err
		}
	}
	return failed
}

func readCheckpoint(directory string) (*document, error) {
	manager, err := checkpointmanager.NewCheckpointManager(directory)
	if err != nil {
		return nil, err
	}
	found := checkpoint.New([]checkpoint.PodDevicesEntry{}, map[string][]string{})
	if err := manager.GetCheckpoint(checkpointName, found); err != nil {
		return nil, err
	}
	return fromKubelet(found.GetData()), nil
}

func writeCheckpoints(directories []string) error {
	if len(directories) == 0 {
		return program.Misused("expected DIR...")
	}
	decoder := json.NewDecoder(os.Stdin)
	for _, directory := range directories {
		var wanted document
		if err := decoder.Decode(&wanted); err != nil {
			return fmt.Errorf("the document for %s: %w", directory, err)
		}
		if err := writeCheckpoint(directory, wanted); err != nil {
			return fmt.Errorf("%s: %w", directory, err)
		}
	}
	return nil
}

func writeCheckpoint(directory string, wanted document) error {
	manager, err := checkpointmanager.NewCheckpointManager(directory)
	if err != nil {
		return err
	}
	entries, err := toKubelet(wanted.Entries)
	if err != nil {
		return err
	}
	return manager.CreateCheckpoint(checkpointName, checkpoint.New(entries, wanted.Registered))
}

func fromKubelet(found []checkpoint.PodDevicesEntry, registered map[string][]string) *document {
	if found == nil {
		return &document{nil, registered}
	}
	entries := make([]entry, 0, len(found))
	for _, e := range found {
		var devices map[string][]string
		if e.DeviceIDs != nil {
			devices = make(map[string][]string, len(e.DeviceIDs))
			for node, ids := range e.DeviceIDs {
				devices[fmt.Sprint(node)] = ids
			}
		}
		entries = append(entries, entry{e.PodUID, e.ContainerName, e.ResourceName, devices, e.AllocResp})
	}
	return &document{entries, registered}
}

func toKubelet(entries []entry) ([]checkpoint.PodDevicesEntry, error) {
	if entries == nil {
		return nil, nil
	}
	converted := make([]checkpoint.PodDevicesEntry, 0, len(entries))
	for _, e := range entries {
		var devices checkpoint.DevicesPerNUMA
		if e.Devices != nil {
			devices = checkpoint.NewDevicesPerNUMA()
			for node, ids := range e.Devices {
				var number int64
				if err := json.Unmarshal([]byte(node), &number); err != nil {
					return nil, fmt.Errorf("NUMA node %q: %w", node, err)
				}
				devices[number] = ids
			}
		}
		converted = append(converted, checkpoint.PodDevicesEntry{
			PodUID: e.Pod, ContainerName: e.Container, ResourceName: e.Resource, DeviceIDs: devices, AllocResp: e.Response,
		})
	}
	return converted, nil
}
