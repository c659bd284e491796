package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"devlet.dev/peers/kubernetes/program"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/state"
)

const checkpointName = "dra_manager_state"

// readCheckpoints prints the claims as the kubelet's structs have them: null and empty stay apart, as they do in the
// file. A list that is null is a checkpoint, too, so one that is refused is false.
func readCheckpoints(directories []string) error {
	if len(directories) == 0 {
		return program.Misused("expected DIR...")
	}
	var failed error
	encoder := json.NewEncoder(os.Stdout)
	for _, directory := range directories {
		var answer any = false
		claims, err := readCheckpoint(directory)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", directory, err))
		} else {
			answer = claims
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return failed
}

// readCheckpoint does as the kubelet does when it starts: it makes the file if there is none.
func readCheckpoint(directory string) (state.ClaimInfoStateList, error) {
	file, err := state.NewCheckpointer(directory, checkpointName)
	if err != nil {
		return nil, err
	}
	found, err := file.GetOrCreate()
	if err != nil {
		return nil, err
	}
	return found.GetClaimInfoStateList()
}

func writeCheckpoints(directories []string) error {
	if len(directories) == 0 {
		return program.Misused("expected DIR...")
	}
	decoder := json.NewDecoder(os.Stdin)
	for _, directory := range directories {
		var claims state.ClaimInfoStateList
		if err := decoder.Decode(&claims); err != nil {
			return fmt.Errorf("the document for %s: %w", directory, err)
		}
		if err := writeCheckpoint(directory, claims); err != nil {
			return fmt.Errorf("%s: %w", directory, err)
		}
	}
	return nil
}

func writeCheckpoint(directory string, claims state.ClaimInfoStateList) error {
	file, err := state.NewCheckpointer(directory, checkpointName)
	if err != nil {
		return err
	}
	checkpoint, err := state.NewCheckpoint(claims)
	if err != nil {
		return err
	}
	return file.Store(checkpoint)
}
