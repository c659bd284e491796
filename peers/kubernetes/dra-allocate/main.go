// dra-allocate answers allocation problems as the scheduler does: with k8s.io/dynamic-resource-allocation/structured.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"k8s.io/dynamic-resource-allocation/structured"

	"devlet.dev/peers/kubernetes/program"
)

const usage = `usage: dra-allocate [flags] [FILE]

Reads problems, one JSON document after the other, from FILE or stdin and prints a line of JSON for each:
{name, answers: [{node, outcome, allocations, error}]}, or {name, placed, seconds, done, claimsPerSecond} for a problem
whose mode is fill, fill-rotate or scheduler.

  --full             also the complete allocation results and the number of search calls
  --bench            also the seconds of each problem
  --features LIST    A,B: only these features; -A,-B: all but these; a problem's own "features" win. There are AdminAccess,
                     ConsumableCapacity, DeviceBindingAndStatus, DeviceTaints, ListTypeAttributes, PartitionableDevices
                     and PrioritizedList; by default all are on
  --variant NAME     of the allocator: experimental (default), incubating, stable, or auto, which lets the features decide
  --parallel N       nodes that mode scheduler asks at the same time (default 16, as a scheduler)
  --max-seconds N    give up on a problem after so long; the answer says how far it came
  --version          of k8s.io/kubernetes
`

type options struct {
	full, bench bool
	features    string
	variant     string
	parallel    int
	maxSeconds  float64
}

func main() {
	program.Only("dra-allocate", usage, run)
}

func run(arguments []string) error {
	var o options
	flags := flag.NewFlagSet("dra-allocate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.full, "full", false, "")
	flags.BoolVar(&o.bench, "bench", false, "")
	flags.StringVar(&o.features, "features", "", "")
	flags.StringVar(&o.variant, "variant", "experimental", "")
	flags.IntVar(&o.parallel, "parallel", 16, "")
	flags.Float64Var(&o.maxSeconds, "max-seconds", 0, "")
	input, err := program.Input(flags, arguments)
	if err != nil {
		return err
	}
	defer input.Close()
	if err := program.Within("parallel", o.parallel, 1, 1024); err != nil {
		return err
	}
	if o.variant != "auto" {
		structured.EnableAllocators(o.variant)
	}
	return o.answerAll(input, os.Stdout)
}

func (o options) answerAll(input io.Reader, output io.Writer) error {
	problems := json.NewDecoder(bufio.NewReader(input))
	lines := json.NewEncoder(output)
	lines.SetEscapeHTML(false)
	for {
		var p problem
		if err := problems.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		line, err := o.answer(&p)
		if err != nil {
			return err
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
}

func (o options) answer(p *problem) (any, error) {
	w, err := newWorld(p, o.features)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if o.maxSeconds > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(o.maxSeconds*float64(time.Second)))
		defer cancel()
		ctx = limited
	}
	switch p.Mode {
	case "":
		return w.solve(ctx, o.full, o.bench)
	case "fill":
		return w.fill(ctx, func(_, _ int) int { return 0 }, w.firstFit)
	case "fill-rotate":
		return w.fill(ctx, func(_, placed int) int { return placed }, w.firstFit)
	case "scheduler":
		return w.fill(ctx, func(next, _ int) int { return next }, w.scan(o.parallel))
	default:
		return nil, program.Misused("problem %s: no mode %q", p.Name, p.Mode)
	}
}
