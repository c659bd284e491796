package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"devlet.dev/peers/kubernetes/kubelet"
	"devlet.dev/peers/kubernetes/program"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

const (
	containerName = "main"
	pluginTimeout = 60 * time.Second
	pollInterval  = 20 * time.Millisecond
)

type result struct {
	Existing   int     `json:"existing"`
	Seconds    float64 `json:"seconds"`
	Admitted   int     `json:"admitted"`
	Failed     int     `json:"failed"`
	Rate       float64 `json:"rate"`
	Written    int64   `json:"written_bytes"` // to files and sockets
	Checkpoint int64   `json:"checkpoint_bytes"`
}

// prepare writes what a kubelet leaves behind that gave the first devices of the plugin to one pod each.
func prepare(arguments []string) error {
	flags := flag.NewFlagSet("prepare", flag.ExitOnError)
	directory := flags.String("directory", "", "to write the checkpoint into")
	name := flags.String("resource", "", "of the plugin")
	existing := flags.Int("existing", 0, "allocations, of one device each")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	if err := program.Within("existing", *existing, 0, mostDevices); err != nil {
		return err
	}
	wanted := document{Registered: map[string][]string{*name: {}}}
	for i := range *existing {
		id := deviceID(i)
		granted, err := proto.MarshalOptions{Deterministic: true}.Marshal(grant([]string{id}))
		if err != nil {
			return err
		}
		devices := map[string][]string{"-1": {id}}
		wanted.Entries = append(wanted.Entries, entry{fmt.Sprintf("existing-%d", i), containerName, *name, devices, granted})
		wanted.Registered[*name] = append(wanted.Registered[*name], id)
	}
	return writeCheckpoint(*directory, wanted)
}

func bench(arguments []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	directory := flags.String("directory", "", "the one that is mounted at "+api.DevicePluginPath)
	name := flags.String("resource", "", "of the plugin, which has to run already")
	count := flags.Int("pods", 64, "how many to admit, with one device each")
	concurrency := flags.Int("concurrency", 1, "pods that wait for admission at a time; the kubelet admits one at a time")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	inRange := errors.Join(
		program.Within("pods", *count, 1, mostDevices), program.Within("concurrency", *concurrency, 1, 1024),
	)
	if inRange != nil {
		return inRange
	}
	if err := sameDirectory(*directory, api.DevicePluginPath); err != nil {
		return program.Misused("%w", err)
	}
	return (&run{name: *name, count: *count, concurrency: *concurrency}).report(*directory)
}

// sameDirectory: the kubelet's manager knows one directory only.
func sameDirectory(given, builtIn string) error {
	a, err := os.Stat(given)
	if err != nil {
		return err
	}
	b, err := os.Stat(builtIn)
	if err != nil || !os.SameFile(a, b) {
		return fmt.Errorf("%s is not mounted at %s: use a mount namespace", given, builtIn)
	}
	return nil
}

type run struct {
	name        string
	count       int
	concurrency int

	pods   []*corev1.Pod // those in place, then those to admit
	active atomic.Int64  // how many of them the manager is told of
}

func (r *run) report(directory string) error {
	found, err := readCheckpoint(directory)
	if err != nil {
		return err
	}
	for _, e := range found.Entries {
		r.pods = append(r.pods, r.pod(e.Pod))
	}
	existing := len(r.pods)
	r.active.Store(int64(existing))
	for i := range r.count {
		r.pods = append(r.pods, r.pod(fmt.Sprintf("new-%d", existing+i)))
	}
	checkpointFile := filepath.Join(directory, checkpointName)
	manager, err := r.start(checkpointFile)
	if err != nil {
		return err
	}
	defer func() { _ = manager.Stop(klog.Background()) }()
	done, failure := r.admitAll(manager, existing)
	file, err := os.Stat(checkpointFile)
	if err != nil {
		return errors.Join(failure, err)
	}
	done.Existing, done.Checkpoint = existing, file.Size()
	return errors.Join(failure, json.NewEncoder(os.Stdout).Encode(done))
}

func (r *run) pod(uid string) *corev1.Pod {
	one := corev1.ResourceList{corev1.ResourceName(r.name): resource.MustParse("1")}
	container := corev1.Container{
		Name: containerName, Resources: corev1.ResourceRequirements{Limits: one, Requests: one},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "default", UID: types.UID(uid)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
	}
}

// start returns when the plugin has registered and its devices are known and written down.
func (r *run) start(checkpointFile string) (devicemanager.Manager, error) {
	before, err := os.Stat(checkpointFile)
	if err != nil {
		return nil, err
	}
	manager, err := devicemanager.NewManagerImpl(nil, kubelet.NoAffinity{})
	if err != nil {
		return nil, err
	}
	activePods := func() []*corev1.Pod { return r.pods[:r.active.Load()] }
	err = manager.Start(klog.Background(), activePods, kubelet.Ready{}, containermap.NewContainerMap(), sets.New[string]())
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(pluginTimeout); time.Now().Before(deadline); time.Sleep(pollInterval) {
		_, allocatable, _ := manager.GetCapacity()
		healthy := allocatable[corev1.ResourceName(r.name)]
		now, err := os.Stat(checkpointFile)
		if err == nil && !os.SameFile(before, now) && healthy.Value() >= int64(len(r.pods)) {
			return manager, nil
		}
	}
	return nil, fmt.Errorf("no plugin brought %d devices of %s within %s", len(r.pods), r.name, pluginTimeout)
}

// admitAll takes one pod at a time, however many wait, as the kubelet's allocation manager does under its lock.
func (r *run) admitAll(manager devicemanager.Manager, next int) (result, error) {
	var lock sync.Mutex
	var waiting sync.WaitGroup
	var done result
	var firstFailure error
	before, err := program.WrittenBytes()
	if err != nil {
		return done, err
	}
	start := time.Now()
	for range r.concurrency {
		waiting.Go(func() {
			for lock.Lock(); next < len(r.pods); lock.Lock() {
				pod := r.pods[next]
				next++
				r.active.Store(int64(next))
				if err := manager.Allocate(pod, &pod.Spec.Containers[0]); err != nil {
					done.Failed++
					if firstFailure == nil {
						firstFailure = fmt.Errorf("pod %s: %w", pod.UID, err)
					}
				} else {
					done.Admitted++
				}
				lock.Unlock()
			}
			lock.Unlock()
		})
	}
	waiting.Wait()
	done.Seconds = time.Since(start).Seconds()
	done.Rate = float64(done.Admitted) / done.Seconds
	after, err := program.WrittenBytes()
	done.Written = after - before
	return done, errors.Join(err, firstFailure)
}
