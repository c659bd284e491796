// kubelet-devices puts the kubelet's device manager, and what belongs to it, within reach of devlet's tests: its
// checkpoint code, its client of the pod resources API, a device plugin on its messages, and a benchmark of it.
package main

import "devlet.dev/peers/kubernetes/program"

const usage = `usage: kubelet-devices COMMAND

  checkpoint-read DIR...    print the device checkpoint in each DIR, one line of JSON each (null: see stderr)
  checkpoint-write DIR...   write one into each DIR, from as many JSON documents on stdin
  pod-resources SOCKET list | allocatable | get NAMESPACE NAME | list-v1alpha1
  plugin [flags]            a device plugin, until it is told to stop
  prepare [flags]           write a checkpoint with allocations of that plugin's first devices
  bench [flags]             admit pods with the kubelet's device manager
  --version                 of k8s.io/kubernetes
`

func main() {
	program.Main("kubelet-devices", usage, program.Commands{
		"checkpoint-read":  readCheckpoints,
		"checkpoint-write": writeCheckpoints,
		"pod-resources":    podResources,
		"plugin":           runPlugin,
		"prepare":          prepare,
		"bench":            bench,
	})
}
