package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kubernetes/test/e2e/dra/test-driver/app"
)

const (
	prepareMethod   = "NodePrepareResources"
	unprepareMethod = "NodeUnprepareResources"
	infoMethod      = "GetInfo"
	notifyMethod    = "NotifyRegistrationStatus"

	patience = 2 * time.Second
)

// command is a line on the socket; each gets a line in answer. Which members count depends on what to do.
type command struct {
	Do      string `json:"do"`
	Method  string `json:"method"`  // as in NodePrepareResources
	Stage   string `json:"stage"`   // hold: before or after the driver has it
	Code    string `json:"code"`    // refuse: as in UNAVAILABLE
	Message string `json:"message"` // refuse, health
	Part    string `json:"part"`    // start, stop: both if it is empty
	Pool    string `json:"pool"`    // health, as the two below
	Device  string `json:"device"`
	Health  string `json:"health"` // Healthy, Unhealthy, or else unknown
}

func (d *testDriver) do(ctx context.Context, c command) (any, error) {
	switch c.Do {
	case "block", "fail":
		return nil, d.use(c.Do, c.Method)
	case "unblock", "unfail":
		return nil, d.undo(strings.TrimPrefix(c.Do, "un"), c.Method)
	case "hold":
		if c.Stage != before && c.Stage != after {
			return nil, fmt.Errorf("stage %q, expected %s or %s", c.Stage, before, after)
		}
		return nil, d.faults.hold(c.Method, c.Stage)
	case "release":
		d.faults.release(c.Method)
	case "refuse":
		return nil, d.refuse(c)
	case "accept":
		d.faults.accept(c.Method)
	case "calls":
		return d.faults.seen(), nil
	case "forget":
		d.faults.forget()
	case "prepared":
		return d.prepared()
	case "registered":
		return d.registered(), nil
	case "health":
		return nil, d.health(c)
	case "start":
		return nil, d.start(ctx, partsOf(c)...)
	case "stop":
		d.stop(partsOf(c)...)
	default:
		return nil, fmt.Errorf("no command %q", c.Do)
	}
	return nil, nil
}

func partsOf(c command) []string {
	if c.Part == "" {
		return []string{service, registrar}
	}
	return []string{c.Part}
}

// use turns on a hook of the driver itself. Hooks are gone when their part stops.
func (d *testDriver) use(what, method string) error {
	owner := service
	if method == infoMethod || method == notifyMethod {
		owner = registrar
	}
	p, err := d.part(owner)
	if err != nil {
		return err
	}
	hooks := map[string]func() func(){
		"block " + prepareMethod:   p.BlockNodePrepareResources,
		"block " + unprepareMethod: p.BlockNodeUnprepareResources,
		"fail " + prepareMethod:    p.SetNodePrepareResourcesFailureMode,
		"fail " + unprepareMethod:  p.SetNodeUnprepareResourcesFailureMode,
		"fail " + infoMethod:       failing(p.SetGetInfoError),
		"fail " + notifyMethod:     failing(p.SetNotifyRegistrationStatusError),
	}
	name := what + " " + method
	if hooks[name] == nil {
		return fmt.Errorf("the driver has no hook to %s %s: hold or refuse it", what, method)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if p.undo[name] == nil { // a second lock would never be got
		p.undo[name] = hooks[name]()
	}
	return nil
}

var errSimulated = errors.New("simulated failure")

func failing(set func(error)) func() func() {
	return func() func() {
		set(errSimulated)
		return func() { set(nil) }
	}
}

func (d *testDriver) undo(what, method string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	name := what + " " + method
	for _, p := range d.parts {
		if p.undo[name] != nil {
			p.undo[name]()
			delete(p.undo, name)
		}
	}
	return nil
}

func (d *testDriver) refuse(c command) error {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + c.Code + `"`)); err != nil || code == codes.OK {
		return fmt.Errorf("code %q, expected one as in UNAVAILABLE", c.Code)
	}
	d.faults.refuse(c.Method, status.New(code, c.Message))
	return nil
}

// prepared has to give up: the driver keeps its lock while it is blocked.
func (d *testDriver) prepared() (any, error) {
	p, err := d.part(service)
	if err != nil {
		return nil, err
	}
	answers := make(chan []app.ClaimID, 1)
	go func() { answers <- p.GetPreparedResources() }()
	select {
	case claims := <-answers:
		return claimsOf(claims), nil
	case <-time.After(patience):
		return nil, fmt.Errorf("the driver does not say within %s, a call may be blocked", patience)
	}
}

type claim struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

func claimsOf(ids []app.ClaimID) []claim {
	claims := make([]claim, 0, len(ids))
	for _, id := range ids {
		claims = append(claims, claim{id.Name, string(id.UID)})
	}
	return claims
}

func (d *testDriver) registered() bool {
	p, err := d.part(registrar)
	return err == nil && p.IsRegistered()
}

// health reaches the driver when a stream asks for it; it keeps a few until then.
func (d *testDriver) health(c command) error {
	p, err := d.part(service)
	if err != nil {
		return err
	}
	select {
	case p.HealthControlChan <- app.DeviceHealthUpdate{
		PoolName: c.Pool, DeviceName: c.Device, Health: c.Health, Message: c.Message,
	}:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("nobody watches the health of the devices, and %d changes wait", cap(p.HealthControlChan))
	}
}
