// kubelet-plugins is what of a kubelet a driver gets to see: its plugin manager, device manager and DRA manager in one
// process, as they are wired up in the kubelet, and pods are what it is told. Beside it, for a whole kubelet, a container
// runtime that runs nothing and writes down what it was asked for.
package main

import "devlet.dev/peers/kubernetes/program"

const usage = `usage: kubelet-plugins COMMAND

  node [flags]      the three managers, with a socket that takes commands
  runtime [flags]   a container runtime for a kubelet; its containers are records
  --version         of k8s.io/kubernetes
`

func main() {
	program.Main("kubelet-plugins", usage, program.Commands{"node": runNode, "runtime": runRuntime})
}
