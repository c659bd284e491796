package main

import (
	"context"
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
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/state"
)

const (
	namespace  = "default"
	nodeName   = "n1"
	mostClaims = 100_000
)

type result struct {
	Existing         int     `json:"existing"`
	Prepared         int     `json:"prepared"`
	PrepareSeconds   float64 `json:"prepare_seconds"`
	PrepareRate      float64 `json:"prepare_rate"`
	Unprepared       int     `json:"unprepared"`
	UnprepareSeconds float64 `json:"unprepare_seconds"`
	UnprepareRate    float64 `json:"unprepare_rate"`
	Written          int64   `json:"written_bytes"` // to files and sockets
	Checkpoint       int64   `json:"checkpoint_bytes"`
}

// prepareState writes what a kubelet leaves behind that prepared as many claims, for one pod each.
func prepareState(arguments []string) error {
	flags := flag.NewFlagSet("prepare-state", flag.ExitOnError)
	directory := flags.String("directory", "", "to write the checkpoint into")
	driver := flags.String("driver", "bench.example.com", "its name")
	existing := flags.Int("existing", 0, "claims, of one device each")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	if err := program.Within("existing", *existing, 0, mostClaims); err != nil {
		return err
	}
	claims := state.ClaimInfoStateList{}
	for i := range *existing {
		name := fmt.Sprintf("existing-%d", i)
		device := prepared(*driver, uidOf(name))
		claims = append(claims, state.ClaimInfoState{
			ClaimUID: uidOf(name), ClaimName: name, Namespace: namespace, PodUIDs: sets.New(name),
			DriverState: map[string]state.DriverState{*driver: {Devices: []state.Device{device}}},
		})
	}
	return writeCheckpoint(*directory, claims)
}

func uidOf(claim string) types.UID { return types.UID("uid-of-" + claim) }

func bench(arguments []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	directory := flags.String("directory", "", "of the checkpoint")
	driver := flags.String("driver", "bench.example.com", "its name")
	socket := flags.String("driver-socket", "", "of its service, which has to run already")
	count := flags.Int("pods", 64, "how many to prepare, and then to unprepare")
	perPod := flags.Int("claims", 1, "of each pod")
	concurrency := flags.Int("concurrency", 1, "pods at a time")
	if err := program.Parse(flags, arguments); err != nil {
		return err
	}
	inRange := errors.Join(
		program.Within("pods", *count, 1, mostClaims), program.Within("claims", *perPod, 0, 100),
		program.Within("concurrency", *concurrency, 1, 1024),
	)
	if inRange != nil {
		return inRange
	}
	r := &run{directory: *directory, driver: *driver, concurrency: *concurrency}
	existing, err := readCheckpoint(*directory)
	if err != nil {
		return err
	}
	for _, claim := range existing {
		for uid := range claim.PodUIDs {
			r.pods = append(r.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}})
		}
	}
	for i := range *count + 1 { // the last one is for a start
		r.add(fmt.Sprintf("new-%d", i), *perPod)
	}
	return r.report(*socket, len(existing), *count)
}

// run knows all pods, so that none is taken for one that is gone.
type run struct {
	directory   string
	driver      string
	concurrency int
	pods        []*corev1.Pod
	claims      []runtime.Object
}

func (r *run) add(name string, claims int) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name)}}
	for i := range claims {
		claim := r.claim(fmt.Sprintf("%s-claim-%d", name, i), pod)
		r.claims = append(r.claims, claim)
		named := corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i), ResourceClaimName: &claim.Name}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, named)
	}
	r.pods = append(r.pods, pod)
}

// claim is one that the scheduler has allocated, and reserved for the pod.
func (r *run) claim(name string, pod *corev1.Pod) *resourceapi.ResourceClaim {
	device := prepared(r.driver, uidOf(name))
	given := resourceapi.DeviceRequestAllocationResult{
		Request: requestName, Driver: r.driver, Pool: device.PoolName, Device: device.DeviceName,
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: uidOf(name)},
		Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{
				Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{given}},
			},
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
		},
	}
}

func (r *run) report(socket string, existing, count int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	manager, err := r.start(ctx, socket)
	if err != nil {
		return err
	}
	last := len(r.pods) - 1
	warmUp, todo := r.pods[last:], r.pods[last-count:last]
	for _, work := range []func(context.Context, *corev1.Pod) error{manager.PrepareResources, manager.UnprepareResources} {
		if _, _, err := r.all(ctx, warmUp, work); err != nil {
			return err
		}
	}
	if err := r.mark("began"); err != nil {
		return err
	}
	before, err := program.WrittenBytes()
	if err != nil {
		return err
	}
	done := result{Existing: existing}
	var failed, failedToo error
	done.Prepared, done.PrepareSeconds, failed = r.all(ctx, todo, manager.PrepareResources)
	file, err := os.Stat(filepath.Join(r.directory, checkpointName))
	if err != nil {
		return errors.Join(failed, err)
	}
	done.Checkpoint = file.Size()
	done.Unprepared, done.UnprepareSeconds, failedToo = r.all(ctx, todo, manager.UnprepareResources)
	after, err := program.WrittenBytes()
	done.Written = after - before
	done.PrepareRate = float64(done.Prepared) / done.PrepareSeconds
	done.UnprepareRate = float64(done.Unprepared) / done.UnprepareSeconds
	return errors.Join(failed, failedToo, err, r.mark("ended"), json.NewEncoder(os.Stdout).Encode(done))
}

// mark tells who watches the directory what belongs to the measurement.
func (r *run) mark(name string) error {
	return os.WriteFile(filepath.Join(r.directory, name+".mark"), nil, 0o600)
}

// start does what the kubelet's plugin manager does when it has found the driver.
func (r *run) start(ctx context.Context, socket string) (*dra.Manager, error) {
	client := fake.NewSimpleClientset(r.claims...)
	manager, err := dra.NewManager(klog.Background(), client, r.directory)
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	getNode := func(context.Context) (*corev1.Node, error) { return node, nil }
	if err := manager.Start(ctx, func() []*corev1.Pod { return r.pods }, getNode, kubelet.Ready{}); err != nil {
		return nil, err
	}
	handler, services := manager.GetWatcherHandler(), []string{draapi.DRAPluginService}
	if err := handler.ValidatePlugin(r.driver, socket, services); err != nil {
		return nil, err
	}
	return manager, handler.RegisterPlugin(r.driver, socket, services, nil)
}

// all does the work for every pod, several at a time as the kubelet's pod workers do: how many it was done for, and how
// long it took.
func (r *run) all(
	ctx context.Context, pods []*corev1.Pod, work func(context.Context, *corev1.Pod) error,
) (int, float64, error) {
	var next, done atomic.Int64
	failures := make([]error, r.concurrency) // the first one of each worker
	var workers sync.WaitGroup
	start := time.Now()
	for worker := range r.concurrency {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(pods)); i = next.Add(1) - 1 {
				if err := work(ctx, pods[i]); err == nil {
					done.Add(1)
				} else if failures[worker] == nil {
					failures[worker] = fmt.Errorf("pod %s: %w", pods[i].UID, err)
				}
			}
		})
	}
	workers.Wait()
	return int(done.Load()), time.Since(start).Seconds(), errors.Join(failures...)
}
