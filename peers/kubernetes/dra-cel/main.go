// dra-cel compiles and evaluates device selectors as the scheduler does: with k8s.io/dynamic-resource-allocation/cel.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"os"
	"time"

	"devlet.dev/peers/kubernetes/program"
)

const usage = `usage: dra-cel [--bench SECONDS] [FILE]

Reads a JSON list of cases {id, expression, device, features, env} from FILE or stdin and prints a line of JSON for each:
{id, result, error, estimatedCost, exceedsEstimateLimit, actualCost}.

  --bench SECONDS   evaluate each case that compiles for so long and print {id, evaluationsPerSecond} instead
  --version         of k8s.io/kubernetes
`

func main() {
	program.Only("dra-cel", usage, run)
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("dra-cel", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	seconds := flags.Float64("bench", 0, "")
	input, err := program.Input(flags, arguments)
	if err != nil {
		return err
	}
	defer input.Close()
	var cases []selectorCase
	if err := json.NewDecoder(input).Decode(&cases); err != nil {
		return err
	}
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	lines := json.NewEncoder(output)
	lines.SetEscapeHTML(false)
	for _, c := range cases {
		var line any = c.answer()
		if *seconds > 0 {
			line = c.bench(time.Duration(*seconds * float64(time.Second)))
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
