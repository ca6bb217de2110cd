package environment

import (
	"math/rand/v2"
	"sync"
)

// Dice are the simulator's only source of chance, safe for concurrent use.
type Dice struct {
	mu     sync.Mutex
	source rand.PCG
	rng    *rand.Rand // of source
}

// NewDice makes the dice of a seed.
func NewDice(seed uint64) *Dice {
	d := &Dice{source: *rand.NewPCG(seed, 0x9E3779B97F4A7C15)}
	d.rng = rand.New(&d.source)
	return d
}

// Chance is true at the given rate. A rate of 0 draws nothing, so that switching one kind of chaos on does not change
// what another kind draws where it is off.
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

// State is where chance has come to.
func (d *Dice) State() rand.PCG {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source
}

// Restore takes chance back to where it was.
func (d *Dice) Restore(from rand.PCG) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.source = from
}
