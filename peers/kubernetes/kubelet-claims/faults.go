package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Where a call is. One that the driver's own hooks block is running.
const (
	before  = "before"
	running = "running"
	after   = "after"
	done    = "done"
)

// call is what was asked and answered. The driver keeps a list, too, but under a lock that a blocked call holds.
type call struct {
	Method   string          `json:"method"`
	Stage    string          `json:"stage"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
	Code     string          `json:"code"` // of gRPC, once it is done
	Error    string          `json:"error"`
}

type point struct{ method, stage string }

// faults are done to calls on their way to and from the driver. They stay while it stops and starts.
type faults struct {
	mutex   sync.Mutex
	calls   []*call
	held    map[point]chan struct{} // closed when it is over
	refused map[string]*status.Status
	streams map[*call]context.CancelFunc
}

func newFaults() *faults {
	return &faults{
		held: map[point]chan struct{}{}, refused: map[string]*status.Status{},
		streams: map[*call]context.CancelFunc{},
	}
}

func (f *faults) hold(method, stage string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at := point{method, stage}
	if f.held[at] != nil {
		return fmt.Errorf("%s is held %s already", method, stage)
	}
	f.held[at] = make(chan struct{})
	return nil
}

func (f *faults) release(method string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for at, over := range f.held {
		if at.method == method {
			close(over)
			delete(f.held, at)
		}
	}
}

// refuse answers in the driver's place, and ends the streams of the method that are open.
func (f *faults) refuse(method string, answer *status.Status) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.refused[method] = answer
	for c, end := range f.streams {
		if path.Base(c.Method) == method {
			end()
		}
	}
}

func (f *faults) accept(method string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.refused, method)
}

func (f *faults) refusal(method string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.refused[method].Err()
}

// seen are copies, in the order of arrival.
func (f *faults) seen() []call {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	copies := make([]call, 0, len(f.calls))
	for _, c := range f.calls {
		copies = append(copies, *c)
	}
	return copies
}

func (f *faults) forget() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.calls = nil
}

func (f *faults) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	c, method := f.arrived(info.FullMethod, request), path.Base(info.FullMethod)
	response, err := func() (any, error) {
		if err := f.pass(ctx, c, point{method, before}); err != nil {
			return nil, err
		}
		if err := f.refusal(method); err != nil {
			return nil, err
		}
		f.moved(c, running)
		response, err := handler(ctx, request)
		if held := f.pass(ctx, c, point{method, after}); held != nil {
			return nil, held
		}
		return response, err
	}()
	f.ended(c, response, err)
	return response, err
}

func (f *faults) stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	c, method := f.arrived(info.FullMethod, nil), path.Base(info.FullMethod)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	err := func() error {
		if err := f.pass(ctx, c, point{method, before}); err != nil {
			return err
		}
		if err := f.opened(c, method, cancel); err != nil {
			return err
		}
		err := handler(server, endable{stream, ctx})
		if refused := f.refusal(method); refused != nil {
			return refused
		}
		return err
	}()
	f.ended(c, nil, err)
	return err
}

// endable is a stream that can be ended while its handler waits.
type endable struct {
	grpc.ServerStream
	ctx context.Context
}

func (e endable) Context() context.Context { return e.ctx }

func (f *faults) arrived(method string, request any) *call {
	c := &call{Method: method, Stage: before, Request: asJSON(request)}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.calls = append(f.calls, c)
	return c
}

// pass waits for as long as calls are held there, and for as long as somebody waits for the answer.
func (f *faults) pass(ctx context.Context, c *call, at point) error {
	f.mutex.Lock()
	c.Stage = at.stage
	over := f.held[at]
	f.mutex.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (f *faults) moved(c *call, stage string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	c.Stage = stage
}

// opened is one step with the look at what is refused: no stream slips through between them.
func (f *faults) opened(c *call, method string, end context.CancelFunc) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	c.Stage = running
	f.streams[c] = end
	return f.refused[method].Err()
}

func (f *faults) ended(c *call, response any, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.streams, c)
	c.Stage, c.Response, c.Code = done, asJSON(response), status.Code(err).String()
	if err != nil {
		c.Error = status.Convert(err).Message()
	}
}

func asJSON(message any) json.RawMessage {
	if known, ok := message.(proto.Message); ok {
		if text, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(known); err == nil {
			return text
		}
	}
	return json.RawMessage("null")
}
