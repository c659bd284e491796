package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	draplugin "k8s.io/kubernetes/pkg/kubelet/cm/dra/plugin"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// command is a line on the socket; each gets a line in answer.
type command struct {
	Do   string      `json:"do"`
	Pod  *corev1.Pod `json:"pod"`
	Name string      `json:"name"` // of a driver
}

// given is what a container gets of both managers.
type given struct {
	Env         map[string]string          `json:"env"`
	Mounts      []kubecontainer.Mount      `json:"mounts"`
	Devices     []kubecontainer.DeviceInfo `json:"devices"`
	Annotations map[string]string          `json:"annotations"`
	CDI         []string                   `json:"cdi"`
}

func (n *node) do(ctx context.Context, c command) (any, error) {
	if n.claims == nil && (c.Do == "driver" || c.Do == "prepare" || c.Do == "unprepare") {
		return nil, errors.New("without a kubeconfig there is no DRA manager")
	}
	switch c.Do {
	case "capacity":
		return n.capacity(), nil
	case "driver":
		return n.driver(c.Name)
	}
	if c.Pod == nil {
		return nil, fmt.Errorf("%q: no such command, or it lacks the pod", c.Do)
	}
	switch c.Do {
	case "admit":
		return nil, n.admit(c.Pod)
	case "prepare":
		return nil, n.claims.PrepareResources(ctx, n.add(c.Pod))
	case "start":
		return n.start(ctx, c.Pod)
	case "health":
		return n.health(c.Pod), nil
	case "unprepare":
		return nil, n.claims.UnprepareResources(ctx, c.Pod)
	case "forget":
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.pods, c.Pod.UID)
		return nil, nil
	}
	return nil, fmt.Errorf("no command %q", c.Do)
}

func (n *node) add(pod *corev1.Pod) *corev1.Pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.pods[pod.UID] = pod
	return pod
}

// admit gives the pod devices of plugins, or it is not one of the node's.
func (n *node) admit(pod *corev1.Pod) error {
	n.add(pod)
	var failed error
	for i := range pod.Spec.Containers {
		failed = errors.Join(failed, n.devices.Allocate(pod, &pod.Spec.Containers[i]))
	}
	if failed != nil {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		delete(n.pods, pod.UID)
	}
	return failed
}

// start is what the kubelet asks right before it makes each container, each time anew.
func (n *node) start(ctx context.Context, pod *corev1.Pod) (map[string]given, error) {
	containers := map[string]given{}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		one := given{Env: map[string]string{}, Annotations: map[string]string{}}
		options, err := n.devices.GetDeviceRunContainerOptions(ctx, pod, container)
		if err != nil {
			return nil, err
		}
		if options != nil {
			for _, variable := range options.Envs {
				one.Env[variable.Name] = variable.Value
			}
			for _, annotation := range options.Annotations {
				one.Annotations[annotation.Name] = annotation.Value
			}
			one.Mounts, one.Devices = options.Mounts, options.Devices
			one.CDI = append(one.CDI, names(options.CDIDevices)...)
		}
		if n.claims != nil {
			resources, err := n.claims.GetResources(pod, container)
			if err != nil {
				return nil, err
			}
			one.CDI = append(one.CDI, names(resources.CDIDevices)...)
		}
		containers[container.Name] = one
	}
	return containers, nil
}

func names(devices []kubecontainer.CDIDevice) []string {
	found := make([]string, len(devices))
	for i, device := range devices {
		found[i] = device.Name
	}
	return found
}

// health is what both write into the pod's status.
func (n *node) health(pod *corev1.Pod) map[string][]corev1.ResourceStatus {
	status := &corev1.PodStatus{}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name})
	}
	n.devices.UpdateAllocatedResourcesStatus(pod, status)
	if n.claims != nil {
		n.claims.UpdateAllocatedResourcesStatus(pod, status)
	}
	found := map[string][]corev1.ResourceStatus{}
	for _, container := range status.ContainerStatuses {
		found[container.Name] = container.AllocatedResourcesStatus
	}
	return found
}

// capacity is what the node's status would say, of each resource: all devices, and the healthy ones.
func (n *node) capacity() map[string][2]int64 {
	all, healthy, _ := n.devices.GetCapacity()
	found := map[string][2]int64{}
	for name, quantity := range all {
		usable := healthy[name]
		found[string(name)] = [2]int64{quantity.Value(), usable.Value()}
	}
	return found
}

// driver says whether a DRA driver is registered.
func (n *node) driver(name string) (bool, error) {
	registered, ok := n.claims.GetWatcherHandler().(*draplugin.DRAPluginManager)
	if !ok {
		return false, fmt.Errorf("the DRA manager has another handler than expected: %T", n.claims.GetWatcherHandler())
	}
	_, err := registered.GetPlugin(name)
	return err == nil, nil
}
