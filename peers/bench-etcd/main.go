// bench-etcd measures a running etcd the way kube-apiserver uses it, as a yardstick for devlet's own store.
//
// It prints one JSON line. Every operation works below --prefix and begins by removing or filling what it
// needs there, outside the measured time; so never point it at an etcd whose data matter.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const clientModule = "go.etcd.io/etcd/client/v3"

type options struct {
	endpoint  string
	prefix    string
	op        string
	writers   int
	count     int
	valueSize int
	watchers  int
	timeout   time.Duration
}

type result struct {
	Op        string  `json:"op"`
	Writers   int     `json:"writers"`
	Count     int     `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	ValueSize int     `json:"value_size"`
	Watchers  int     `json:"watchers,omitempty"`
	Events    int64   `json:"events,omitempty"`
}

func main() {
	o, showVersion := parse()
	if showVersion {
		fmt.Println(clientVersion())
		return
	}
	if err := o.check(); err != nil {
		fmt.Fprintf(os.Stderr, "bench-etcd: %v\n", err)
		os.Exit(2)
	}
	r, err := run(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-etcd: %s: %v\n", o.op, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func parse() (options, bool) {
	var o options
	flag.StringVar(&o.endpoint, "endpoint", "http://127.0.0.1:2379", "client URL of the etcd to measure")
	flag.StringVar(&o.prefix, "prefix", "/devlet-bench/", "keys below this are removed and written")
	flag.StringVar(&o.op, "op", "create", "create, list or watch")
	flag.IntVar(&o.writers, "writers", 16, "goroutines that write (watch always has one)")
	flag.IntVar(&o.count, "count", 1000, "keys")
	flag.IntVar(&o.valueSize, "value-size", 1024, "bytes per value")
	flag.IntVar(&o.watchers, "watchers", 10, "watches, each on a connection of its own")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up after this long")
	showVersion := flag.Bool("version", false, "print the version of the etcd client and exit")
	flag.Parse()
	return o, *showVersion
}

func clientVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == clientModule {
			return dep.Version
		}
	}
	return "unknown"
}

func (o options) check() error {
	bounds := []struct {
		flag              string
		value, least, top int
	}{
		{"--writers", o.writers, 1, 1024},
		{"--count", o.count, 1, 1_000_000},
		{"--value-size", o.valueSize, 0, 1 << 20},
		{"--watchers", o.watchers, 1, 1000},
	}
	for _, b := range bounds {
		if b.value < b.least || b.value > b.top {
			return fmt.Errorf("%s is %d, expected %d to %d", b.flag, b.value, b.least, b.top)
		}
	}
	if o.op != "create" && o.op != "list" && o.op != "watch" {
		return fmt.Errorf("--op is %q, expected create, list or watch", o.op)
	}
	if o.op == "list" && o.count*o.valueSize > 1<<30 {
		return errors.New("--count times --value-size is over 1 GiB, more than one list may return")
	}
	if len(o.prefix) < 2 {
		return fmt.Errorf("--prefix is %q: too short, everything would be removed", o.prefix)
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
	client, err := connect(ctx, o)
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	switch o.op {
	case "list":
		return list(ctx, client, o)
	case "watch":
		o.writers = 1
		return watch(ctx, client, o)
	default:
		return create(ctx, client, o)
	}
}

func connect(ctx context.Context, o options) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{o.endpoint}, DialTimeout: 5 * time.Second, Context: ctx})
}

func create(ctx context.Context, client *clientv3.Client, o options) (result, error) {
	if _, err := client.Delete(ctx, o.prefix, clientv3.WithPrefix()); err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := fill(ctx, client, o); err != nil {
		return result{}, err
	}
	return o.report(time.Since(start), int64(o.count)), nil
}

func list(ctx context.Context, client *clientv3.Client, o options) (result, error) {
	if err := ensure(ctx, client, o); err != nil {
		return result{}, err
	}
	start := time.Now()
	page, err := client.Get(ctx, o.prefix, clientv3.WithPrefix())
	if err != nil {
		return result{}, err
	}
	took := time.Since(start)
	if len(page.Kvs) != o.count {
		return result{}, fmt.Errorf("listed %d keys, expected %d", len(page.Kvs), o.count)
	}
	return o.report(took, int64(len(page.Kvs))), nil
}

// ensure leaves exactly count keys with values of the right size; what an earlier create left is used as it is.
func ensure(ctx context.Context, client *clientv3.Client, o options) error {
	there, err := client.Get(ctx, o.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	first, err := client.Get(ctx, o.prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
	if err != nil {
		return err
	}
	if there.Count == int64(o.count) && len(first.Kvs[0].Value) == o.valueSize {
		return nil
	}
	if _, err := client.Delete(ctx, o.prefix, clientv3.WithPrefix()); err != nil {
		return err
	}
	return fill(ctx, client, o)
}

// watch measures from the first write to the last event at the last watcher.
func watch(ctx context.Context, client *clientv3.Client, o options) (result, error) {
	if _, err := client.Delete(ctx, o.prefix, clientv3.WithPrefix()); err != nil {
		return result{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var delivered atomic.Int64
	var finished sync.WaitGroup
	for range o.watchers {
		events, closeWatch, err := subscribe(ctx, o)
		if err != nil {
			return result{}, err
		}
		defer closeWatch()
		finished.Add(1)
		go func() {
			defer finished.Done()
			if err := receive(ctx, events, o.count, &delivered); err != nil {
				stop(err)
			}
		}()
	}
	start := time.Now()
	if err := fill(ctx, client, o); err != nil {
		stop(err)
	}
	finished.Wait()
	took := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	r := o.report(took, delivered.Load())
	r.Watchers, r.Events = o.watchers, delivered.Load()
	return r, nil
}

// subscribe returns when etcd has confirmed the watch: no later write can be missed.
func subscribe(ctx context.Context, o options) (clientv3.WatchChan, func(), error) {
	client, err := connect(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	closeWatch := func() { _ = client.Close() }
	events := client.Watch(ctx, o.prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	select {
	case first := <-events:
		if !first.Created {
			closeWatch()
			return nil, nil, fmt.Errorf("etcd did not confirm a watch: %w", errors.Join(first.Err(), ctx.Err()))
		}
		return events, closeWatch, nil
	case <-ctx.Done():
		closeWatch()
		return nil, nil, context.Cause(ctx)
	}
}

func receive(ctx context.Context, events clientv3.WatchChan, want int, delivered *atomic.Int64) error {
	for got := 0; got < want; {
		select {
		case batch, open := <-events:
			if !open || batch.Err() != nil {
				return fmt.Errorf("watch ended after %d of %d events: %w", got, want, errors.Join(batch.Err(), ctx.Err()))
			}
			got += len(batch.Events)
			delivered.Add(int64(len(batch.Events)))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// fill writes count keys from all writers at once, each in the transaction that kube-apiserver uses to create:
// put if the key does not exist.
func fill(ctx context.Context, client *clientv3.Client, o options) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var writers sync.WaitGroup
	for range o.writers {
		writers.Go(func() {
			value := make([]byte, o.valueSize)
			_, _ = rand.Read(value)
			for i := next.Add(1); i <= int64(o.count) && ctx.Err() == nil; i = next.Add(1) {
				if err := createOne(ctx, client, fmt.Sprintf("%s%08d", o.prefix, i), string(value)); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	writers.Wait()
	return context.Cause(ctx)
}

func createOne(ctx context.Context, client *clientv3.Client, key, value string) error {
	absent := clientv3.Compare(clientv3.ModRevision(key), "=", 0)
	answer, err := client.Txn(ctx).If(absent).Then(clientv3.OpPut(key, value)).Commit()
	if err != nil {
		return err
	}
	if !answer.Succeeded {
		return fmt.Errorf("key %s exists: another run writes below the same prefix", key)
	}
	return nil
}

func (o options) report(took time.Duration, done int64) result {
	return result{
		Op: o.op, Writers: o.writers, Count: o.count, ValueSize: o.valueSize,
		Seconds: took.Seconds(), PerSecond: float64(done) / took.Seconds(),
	}
}
