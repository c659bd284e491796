// bench-api loads a Kubernetes API server over HTTPS and prints one line of JSON about what it did.
//
// It is the same program for every server that bench/api.py compares: bodies are made beforehand and read from a
// file, answers are counted but not decoded, and every writer and watcher has a connection of its own, as separate
// drivers have. It creates objects and leaves them there; never point it at a cluster that matters.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

type options struct {
	server      string
	ca          string
	tokenFile   string
	op          string
	path        string
	bodies      string
	contentType string
	accept      string
	gzip        bool
	warmup      int
	writers     int
	watchers    int
	repeat      int
	timeout     time.Duration
}

type result struct {
	Op        string    `json:"op"`
	Writers   int       `json:"writers,omitempty"`
	Watchers  int       `json:"watchers,omitempty"`
	Count     int       `json:"count"`
	Seconds   float64   `json:"seconds"`
	PerSecond float64   `json:"per_second"`
	Each      []float64 `json:"each,omitempty"`     // seconds of every single list
	Bytes     int64     `json:"bytes,omitempty"`    // of one list, uncompressed
	Events    int64     `json:"events,omitempty"`   // that arrived, at all watchers together
	Restarts  int64     `json:"restarts,omitempty"` // of watches that the server ended for being too slow
}

func main() {
	o, showVersion := parse()
	if showVersion {
		fmt.Println(version())
		return
	}
	if err := o.check(); err != nil {
		fmt.Fprintf(os.Stderr, "bench-api: %v\n", err)
		os.Exit(2)
	}
	r, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-api: %s %s: %v\n", o.op, o.path, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func parse() (options, bool) {
	var o options
	flag.StringVar(&o.server, "server", "", "URL of the API server")
	flag.StringVar(&o.ca, "ca", "", "file with the certificates to trust")
	flag.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token")
	flag.StringVar(&o.op, "op", "create", "create, list or watch")
	flag.StringVar(&o.path, "path", "", "of the collection, as in /apis/resource.k8s.io/v1/resourceslices")
	flag.StringVar(&o.bodies, "bodies", "", "file with the objects to create: each four bytes of length and the body")
	flag.StringVar(&o.contentType, "content-type", "application/json", "of the bodies")
	flag.StringVar(&o.accept, "accept", "application/json", "what the answers may be")
	flag.BoolVar(&o.gzip, "gzip", false, "accept compressed answers")
	flag.IntVar(&o.warmup, "warmup", 0, "bodies that are sent before the clock starts")
	flag.IntVar(&o.writers, "writers", 1, "connections that create (watch always has one)")
	flag.IntVar(&o.watchers, "watchers", 10, "watches, each on a connection of its own")
	flag.IntVar(&o.repeat, "repeat", 1, "lists, one after the other")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "give up after this long")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	return o, *showVersion
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

func (o options) check() error {
	bounds := []struct {
		flag              string
		value, least, top int
	}{
		{"--writers", o.writers, 1, 1024},
		{"--watchers", o.watchers, 1, 1000},
		{"--repeat", o.repeat, 1, 1000},
		{"--warmup", o.warmup, 0, 1_000_000},
	}
	for _, b := range bounds {
		if b.value < b.least || b.value > b.top {
			return fmt.Errorf("%s is %d, expected %d to %d", b.flag, b.value, b.least, b.top)
		}
	}
	if o.op != "create" && o.op != "list" && o.op != "watch" {
		return fmt.Errorf("--op is %q, expected create, list or watch", o.op)
	}
	needed := map[string]string{"--server": o.server, "--ca": o.ca, "--token-file": o.tokenFile, "--path": o.path}
	if o.op != "list" {
		needed["--bodies"] = o.bodies
	}
	for name, value := range needed {
		if value == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout is %s, expected more than 0", o.timeout)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	return nil
}

func run(o options) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	target, err := newTarget(o)
	if err != nil {
		return result{}, err
	}
	if o.op == "list" {
		return list(ctx, target, o)
	}
	bodies, err := readBodies(o.bodies)
	if err != nil {
		return result{}, err
	}
	if o.warmup >= len(bodies) {
		return result{}, fmt.Errorf("--warmup is %d, but there are only %d bodies", o.warmup, len(bodies))
	}
	if err := create(ctx, target, bodies[:o.warmup], o.writers); err != nil {
		return result{}, err
	}
	if o.op == "watch" {
		return watch(ctx, target, bodies[o.warmup:], o.watchers)
	}
	start := time.Now()
	err = create(ctx, target, bodies[o.warmup:], o.writers)
	count, took := len(bodies)-o.warmup, time.Since(start).Seconds()
	return result{Op: o.op, Writers: o.writers, Count: count, Seconds: took, PerSecond: float64(count) / took}, err
}
