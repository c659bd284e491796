// Package program is the command line of devlet's own programs here: `PROGRAM COMMAND [flags]`.
package program

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

const kubernetesModule = "k8s.io/kubernetes"

// BadUsage is a mistake on the command line, as opposed to work that failed.
type BadUsage struct{ error }

// Misused says what the mistake is.
func Misused(format string, arguments ...any) error {
	return BadUsage{fmt.Errorf(format, arguments...)}
}

type Commands map[string]func(arguments []string) error

// Main runs the command and ends the process with 0, 1 or, if it was called wrongly, 2.
func Main(name, usage string, commands Commands) {
	commands["--version"] = printVersion
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	err := commands[os.Args[1]](os.Args[2:])
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", name, os.Args[1], err)
	if errors.As(err, &BadUsage{}) {
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

// Parse reads the flags of one command; it takes no other arguments, and every flag of text has to be set, except the
// optional ones.
func Parse(flags *flag.FlagSet, arguments []string, optional ...string) error {
	_ = flags.Parse(arguments)
	if flags.NArg() > 0 {
		return Misused("unexpected argument %q", flags.Arg(0))
	}
	var missing []string
	flags.VisitAll(func(f *flag.Flag) {
		if f.Value.String() == "" && !slices.Contains(optional, f.Name) {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return Misused("%s missing", strings.Join(missing, ", "))
	}
	return nil
}

func Within(name string, value, least, most int) error {
	if value < least || value > most {
		return Misused("--%s is %d, expected %d to %d", name, value, least, most)
	}
	return nil
}
