package environment

import (
	"math/rand/v2"
	"sync"
)

// Dice makes all random choices of the simulator. It is safe for concurrent use.
type Dice struct {
	mu     sync.Mutex
	source rand.PCG
	rng    *rand.Rand // of source
}

// NewDice returns Dice with this seed.
func NewDice(seed uint64) *Dice {
	d := &Dice{source: *rand.NewPCG(seed, 0x9E3779B97F4A7C15)}
	d.rng = rand.New(&d.source)
	return d
}

// Chance returns true at the given rate. A rate of 0 draws nothing, so enabling one kind of failure does not change the draws
// of a disabled one.
func (d *Dice) Chance(rate float64) bool {
	if rate <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < rate
}

// Below returns a number from 0 to n-1.
func (d *Dice) Below(n int) int {
	if n <= 1 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// State returns the current state of the random generator.
func (d *Dice) State() rand.PCG {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source
}

// Restore sets the random generator back to a state.
func (d *Dice) Restore(from rand.PCG) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.source = from
}
