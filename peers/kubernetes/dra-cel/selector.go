package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type selectorCase struct {
	ID         string       `json:"id"`
	Expression string       `json:"expression"`
	Device     deviceInput  `json:"device"`
	Features   caseFeatures `json:"features"`
	Env        string       `json:"env"`
}

type deviceInput struct {
	Driver string `json:"driver"`
	resourceapi.Device
}

type caseFeatures struct {
	ConsumableCapacity bool `json:"consumableCapacity"`
	ListTypeAttributes bool `json:"listTypeAttributes"`
}

type answer struct {
	ID                   string  `json:"id"`
	Result               any     `json:"result"` // a bool, "compile-error" or "runtime-error"
	Error                string  `json:"error,omitempty"`
	EstimatedCost        any     `json:"estimatedCost,omitempty"` // a number or "unbounded"
	ExceedsEstimateLimit *bool   `json:"exceedsEstimateLimit,omitempty"`
	ActualCost           *uint64 `json:"actualCost,omitempty"`
}

type benchAnswer struct {
	ID                   string  `json:"id"`
	EvaluationsPerSecond float64 `json:"evaluationsPerSecond"`
	Error                string  `json:"error,omitempty"` // of the compiler; evaluations that fail count like others
}

// compile does not fail for cases with an unknown environment: they are compiled as stored expressions, like the default.
func (c selectorCase) compile() dracel.CompilationResult {
	features := dracel.Features{
		EnableConsumableCapacity: c.Features.ConsumableCapacity,
		EnableListTypeAttributes: c.Features.ListTypeAttributes,
	}
	env := environment.StoredExpressions
	if c.Env == "new" {
		env = environment.NewExpressions
	}
	return dracel.GetCompiler(features).CompileCELExpression(c.Expression, dracel.Options{EnvType: &env})
}

func (c selectorCase) device() dracel.Device {
	return dracel.Device{
		Driver:                   c.Device.Driver,
		AllowMultipleAllocations: c.Device.AllowMultipleAllocations,
		Attributes:               c.Device.Attributes,
		Capacity:                 c.Device.Capacity,
	}
}

func (c selectorCase) answer() answer {
	compiled := c.compile()
	if compiled.Error != nil {
		return answer{ID: c.ID, Result: "compile-error", Error: compiled.Error.Error()}
	}
	exceeds := compiled.MaxCost > resourceapi.CELSelectorExpressionMaxCost
	a := answer{ID: c.ID, EstimatedCost: compiled.MaxCost, ExceedsEstimateLimit: &exceeds, ActualCost: new(uint64)}
	if compiled.MaxCost == math.MaxUint64 {
		a.EstimatedCost = "unbounded"
	}
	matches, details, err := compiled.DeviceMatches(context.Background(), c.device())
	if details != nil && details.ActualCost() != nil {
		a.ActualCost = details.ActualCost()
	}
	a.Result = matches
	if err != nil {
		a.Result, a.Error = "runtime-error", err.Error()
	}
	return a
}

// bench compiles once, as a scheduler with a warm cache; building the input from the device belongs to each evaluation.
func (c selectorCase) bench(d time.Duration) benchAnswer {
	compiled := c.compile()
	if compiled.Error != nil {
		return benchAnswer{ID: c.ID, Error: compiled.Error.Error()}
	}
	ctx, device := context.Background(), c.device()
	count, start := 0, time.Now()
	for time.Since(start) < d {
		for range 16 {
			_, _, _ = compiled.DeviceMatches(ctx, device)
		}
		count += 16
	}
	return benchAnswer{ID: c.ID, EvaluationsPerSecond: float64(count) / time.Since(start).Seconds()}
}

// UnmarshalJSON is here because a value that is no device must be told with the case it belongs to.
func (c *selectorCase) UnmarshalJSON(data []byte) error {
	type plain selectorCase
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return fmt.Errorf("case %q: %w", c.ID, err)
	}
	return nil
}
