// Package program is the command line of devlet's own programs here: `PROGRAM COMMAND [flags]`.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	_ "k8s.io/kubernetes/pkg/apis/resource" // a program of staging libraries only would not know its version
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
	end(name+": "+os.Args[1], commands[os.Args[1]](os.Args[2:]))
}

// Only is Main for a program that does one thing: `PROGRAM [flags] [FILE]`.
func Only(name, usage string, run func(arguments []string) error) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--version":
		end(name, printVersion(nil))
	case len(os.Args) == 2 && os.Args[1] == "--help":
		fmt.Print(usage)
	default:
		end(name, run(os.Args[1:]))
	}
}

func end(who string, err error) {
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
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

// Input parses the flags and opens the one FILE that may follow them, or stdin.
func Input(flags *flag.FlagSet, arguments []string) (io.ReadCloser, error) {
	if err := flags.Parse(arguments); err != nil {
		return nil, Misused("%w", err)
	}
	switch flags.NArg() {
	case 0:
		return os.Stdin, nil
	case 1:
		return os.Open(flags.Arg(0))
	default:
		return nil, Misused("unexpected argument %q", flags.Arg(1))
	}
}

func Within(name string, value, least, most int) error {
	if value < least || value > most {
		return Misused("--%s is %d, expected %d to %d", name, value, least, most)
	}
	return nil
}
