package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const maxLine = 8 << 20

// create sends every body once, from all writers at once; each waits for the answer before it sends the next.
func create(ctx context.Context, t target, bodies [][]byte, writers int) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			client := t.connection()
			defer client.CloseIdleConnections()
			for i := next.Add(1); i <= int64(len(bodies)) && ctx.Err() == nil; i = next.Add(1) {
				if err := createOne(ctx, t, client, bodies[i-1]); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	done.Wait()
	return context.Cause(ctx)
}

func createOne(ctx context.Context, t target, client *http.Client, body []byte) error {
	answer, err := t.do(ctx, client, http.MethodPost, "", body, http.StatusCreated)
	if err != nil {
		return err
	}
	_, err = drain(answer)
	return err
}

// list reads the whole collection several times over one connection.
func list(ctx context.Context, t target, o options) (result, error) {
	client := t.connection()
	r := result{Op: o.op, Count: o.repeat}
	for range o.repeat {
		start := time.Now()
		answer, err := t.do(ctx, client, http.MethodGet, "", nil, http.StatusOK)
		if err != nil {
			return r, err
		}
		if r.Bytes, err = drain(answer); err != nil {
			return r, err
		}
		r.Each = append(r.Each, time.Since(start).Seconds())
	}
	sorted := slices.Sorted(slices.Values(r.Each))
	r.Seconds = sorted[len(sorted)/2]
	r.PerSecond = 1 / r.Seconds
	return r, nil
}

// watch measures from the first create to the last event at the last watcher.
func watch(ctx context.Context, t target, bodies [][]byte, watchers int) (result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	version, err := newestVersion(ctx, t)
	if err != nil {
		return result{}, err
	}
	var events, restarts atomic.Int64
	var ready, done sync.WaitGroup
	for range watchers {
		ready.Add(1)
		done.Go(func() {
			w := watcher{target: t, version: version, want: len(bodies), started: sync.OnceFunc(ready.Done)}
			defer w.started()
			if err := w.run(ctx); err != nil {
				stop(err)
			}
			events.Add(int64(w.got))
			restarts.Add(int64(w.restarts))
		})
	}
	ready.Wait()
	start := time.Now()
	if err := create(ctx, t, bodies, 1); err != nil {
		stop(err)
	}
	done.Wait()
	took := time.Since(start).Seconds()
	r := result{Op: "watch", Writers: 1, Watchers: watchers, Count: len(bodies), Seconds: took}
	r.Events, r.Restarts = events.Load(), restarts.Load()
	r.PerSecond = float64(r.Events) / took
	return r, context.Cause(ctx)
}

// newestVersion is the resourceVersion of the collection, after which a watch misses nothing.
func newestVersion(ctx context.Context, t target) (string, error) {
	client := t.connection()
	defer client.CloseIdleConnections()
	t.accept = "application/json"
	answer, err := t.do(ctx, client, http.MethodGet, "?limit=1", nil, http.StatusOK)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	return versionIn(io.LimitReader(answer.Body, maxLine))
}

func versionIn(text io.Reader) (string, error) {
	var found struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(text).Decode(&found); err != nil {
		return "", err
	}
	if found.Metadata.ResourceVersion == "" {
		return "", errors.New("an object has no resourceVersion")
	}
	return found.Metadata.ResourceVersion, nil
}

// watcher counts lines, one per event. A stream that the server ends goes on where it stopped, as a client's would.
type watcher struct {
	target   target
	version  string
	want     int
	got      int
	restarts int
	started  func()
}

func (w *watcher) run(ctx context.Context) error {
	w.target.accept = "application/json"
	client := w.target.connection()
	defer client.CloseIdleConnections()
	for {
		last, err := w.stream(ctx, client)
		if err != nil || w.got == w.want {
			return err
		}
		if last != nil {
			if err := w.resumeAfter(last); err != nil {
				return err
			}
		}
		w.restarts++
		if w.restarts > w.want {
			return fmt.Errorf("watch ended %d times within %d of %d events", w.restarts, w.got, w.want)
		}
	}
}

// stream reads one answer until it ends or enough events came; the last line is returned.
func (w *watcher) stream(ctx context.Context, client *http.Client) ([]byte, error) {
	answer, err := w.target.do(ctx, client, http.MethodGet, "?watch=true&resourceVersion="+w.version, nil, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	w.started()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(make([]byte, 256<<10), maxLine)
	var last []byte
	for w.got < w.want && lines.Scan() {
		last = append(last[:0], lines.Bytes()...)
		w.got++
	}
	if w.got < w.want && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return last, nil // an end without an event more is a server that had enough of us
}

func (w *watcher) resumeAfter(line []byte) error {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	if event.Type != "ADDED" {
		return fmt.Errorf("watch sent %s after %d of %d events: %.500s", event.Type, w.got, w.want, event.Object)
	}
	version, err := versionIn(bytes.NewReader(event.Object))
	w.version = version
	return err
}
