// kubelet-devices puts the kubelet's device manager, and what belongs to it, within reach of devlet's tests: its
// checkpoint code, its client of the pod resources API, a device plugin on its messages, and a benchmark of it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

const kubernetesModule = "k8s.io/kubernetes"

const usage = `usage: kubelet-devices COMMAND

  checkpoint-read DIR...    print the device checkpoint in each DIR, one line of JSON each (null: see stderr)
  checkpoint-write DIR...   write one into each DIR, from as many JSON documents on stdin
  pod-resources SOCKET list | allocatable | get NAMESPACE NAME | list-v1alpha1
  plugin [flags]            a device plugin, until it is told to stop
  prepare [flags]           write a checkpoint with allocations of that plugin's first devices
  bench [flags]             admit pods with the kubelet's device manager
  --version                 of k8s.io/kubernetes
`

// badUsage is a mistake on the command line, as opposed to work that failed.
type badUsage struct{ error }

var commands = map[string]func(arguments []string) error{
	"checkpoint-read":  readCheckpoints,
	"checkpoint-write": writeCheckpoints,
	"pod-resources":    podResources,
	"plugin":           runPlugin,
	"prepare":          prepare,
	"bench":            bench,
	"--version":        printVersion,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	err := commands[os.Args[1]](os.Args[2:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "kubelet-devices: %s: %v\n", os.Args[1], err)
	if errors.As(err, &badUsage{}) {
		os.Exit(2)
	}
	os.Exit(1)
}

func printVersion([]string) error {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == kubernetesModule {
			fmt.Println(dep.Version)
			return nil
		}
	}
	return fmt.Errorf("linked without %s", kubernetesModule)
}

// parse reads the flags of one command; it takes no other arguments, and every flag of text has to be set.
func parse(flags *flag.FlagSet, arguments []string) error {
	_ = flags.Parse(arguments)
	if flags.NArg() > 0 {
		return badUsage{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	var missing []string
	flags.VisitAll(func(f *flag.Flag) {
		if f.Value.String() == "" {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return badUsage{fmt.Errorf("%s missing", strings.Join(missing, ", "))}
	}
	return nil
}

func within(name string, value, least, most int) error {
	if value < least || value > most {
		return badUsage{fmt.Errorf("--%s is %d, expected %d to %d", name, value, least, most)}
	}
	return nil
}
