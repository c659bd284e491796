package main

import (
	"context"
	"sync/atomic"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/dynamic-resource-allocation/structured"
)

type filled struct {
	Name            string  `json:"name"`
	Placed          int     `json:"placed"`
	Seconds         float64 `json:"seconds"`
	Done            int     `json:"done"` // claims tried; fewer than there are when the time was up
	ClaimsPerSecond float64 `json:"claimsPerSecond"`
}

// placing is where a claim fits, -1 if nowhere, and how many nodes were asked to know that.
type placing struct {
	node       int
	allocation resourceapi.AllocationResult
	asked      int
}

// placer looks for a node from the start index on, around the end.
type placer func(ctx context.Context, allocator structured.Allocator, claim *resourceapi.ResourceClaim, start int) placing

// fill takes the claims one after the other, each with an allocator of its own. start decides where the next scan begins,
// from the index after the nodes asked and the node of the last claim placed.
func (w *world) fill(ctx context.Context, start func(next, placed int) int, place placer) (*filled, error) {
	answer := &filled{Name: w.Name}
	begun := time.Now()
	next, placed := 0, 0
	for _, claim := range w.Claims {
		allocator, err := w.allocator(ctx)
		if err != nil {
			return nil, err
		}
		from := start(next, placed)
		p := place(ctx, allocator, claim, from)
		if ctx.Err() != nil {
			break
		}
		if p.node >= 0 {
			w.state.add(&p.allocation)
			placed = p.node
			answer.Placed++
		}
		next = (from + p.asked) % max(1, len(w.Nodes))
		answer.Done++
	}
	answer.Seconds = time.Since(begun).Seconds()
	answer.ClaimsPerSecond = float64(answer.Done) / answer.Seconds
	return answer, nil
}

func (w *world) try(ctx context.Context, allocator structured.Allocator, claim *resourceapi.ResourceClaim, node int) placing {
	results, err := allocator.Allocate(ctx, w.Nodes[node], []*resourceapi.ResourceClaim{claim})
	if err != nil || results == nil {
		return placing{node: -1}
	}
	return placing{node: node, allocation: results[0]}
}

func (w *world) firstFit(ctx context.Context, allocator structured.Allocator, claim *resourceapi.ResourceClaim, start int) placing {
	for i := range w.Nodes {
		if p := w.try(ctx, allocator, claim, (start+i)%len(w.Nodes)); p.node >= 0 {
			p.asked = i + 1
			return p
		}
	}
	return placing{node: -1, asked: len(w.Nodes)}
}

// scan is what kube-scheduler's Filter does: workers ask nodes until enough are found, and the first of those is taken.
func (w *world) scan(workers int) placer {
	wanted := feasibleNodes(len(w.Nodes))
	return func(ctx context.Context, allocator structured.Allocator, claim *resourceapi.ResourceClaim, start int) placing {
		found := make([]placing, wanted)
		var fits, asked atomic.Int64
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ask := func(i int) {
			p := w.try(ctx, allocator, claim, (start+i)%len(w.Nodes))
			if ctx.Err() != nil {
				return
			}
			asked.Add(1)
			if p.node < 0 {
				return
			}
			if n := fits.Add(1); n > int64(wanted) {
				asked.Add(-1)
				cancel()
			} else {
				found[n-1] = p
			}
		}
		workqueue.ParallelizeUntil(ctx, workers, len(w.Nodes), ask, workqueue.WithChunkSize(chunk(len(w.Nodes), workers)))
		if fits.Load() == 0 {
			return placing{node: -1, asked: int(asked.Load())}
		}
		found[0].asked = int(asked.Load())
		return found[0]
	}
}

// feasibleNodes is how many a scheduler looks for by default: a share that shrinks from half to a twentieth, at least 100.
func feasibleNodes(nodes int) int {
	share := max(5, 50-nodes/125)
	return min(nodes, max(100, nodes*share/100))
}

// chunk is the scheduler's: the square root of the number, but so small that every worker gets something.
func chunk(nodes, workers int) int {
	root := 1
	for (root+1)*(root+1) <= nodes {
		root++
	}
	return min(root, nodes/workers+1)
}
