// Package kubelet has what the kubelet's managers ask of the rest of it.
package kubelet

import "k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"

// Ready has heard of all pods.
type Ready struct{}

func (Ready) AddSource(string) {}
func (Ready) AllReady() bool   { return true }

// NoAffinity is what the topology manager says under its policy none.
type NoAffinity struct{}

func (NoAffinity) GetAffinity(string, string) topologymanager.TopologyHint {
	return topologymanager.TopologyHint{}
}
func (NoAffinity) GetPolicy() topologymanager.Policy { return topologymanager.NewNonePolicy() }
func (NoAffinity) Name() string                      { return "none" }
