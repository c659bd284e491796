// kubelet-claims puts the kubelet's DRA manager, and what belongs to it, within reach of devlet's tests: its checkpoint
// code, a benchmark of it with a driver that does nothing, and the test driver of Kubernetes with its fault hooks.
package main

import "devlet.dev/peers/kubernetes/program"

const usage = `usage: kubelet-claims COMMAND

  checkpoint-read DIR...    print the claims of the checkpoint in each DIR, one line of JSON each (false: see stderr)
  checkpoint-write DIR...   write one into each DIR, from as many JSON documents on stdin
  test-driver [flags]       the DRA driver of Kubernetes' end-to-end tests, with a socket to control its faults
  driver [flags]            a DRA driver that answers at once, until it is told to stop
  prepare-state [flags]     write a checkpoint with claims of that driver
  bench [flags]             prepare and unprepare claims with the kubelet's DRA manager
  --version                 of k8s.io/kubernetes
`

func main() {
	program.Main("kubelet-claims", usage, program.Commands{
		"checkpoint-read":  readCheckpoints,
		"checkpoint-write": writeCheckpoints,
		"test-driver":      runTestDriver,
		"driver":           runDriver,
		"prepare-state":    prepareState,
		"bench":            bench,
	})
}
