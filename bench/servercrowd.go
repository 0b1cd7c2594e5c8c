package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// burstRow opens many sessions in one moment. All must come to be.
func (b *served) burstRow(ctx context.Context) (rows []row, err error) {
	var one time.Duration
	ids, errs := make([]cove.ID, b.burst), make([]error, b.burst)
	err = b.with(func(c *client.Client) (err error) {
		began := time.Now()
		alone, err := c.Sessions().Open(ctx, cove.OpenRequest{})
		if err != nil {
			return err
		}
		one = time.Since(began)
		if err := closeAll(ctx, c, []cove.ID{alone.ID}); err != nil {
			return err
		}
		began = time.Now()
		measure.Together(b.burst, func(i int) {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{})
			if errs[i] = err; err == nil {
				ids[i] = s.ID
			}
		})
		took := time.Since(began)
		made := ids[:0]
		for i, id := range ids {
			if errs[i] == nil {
				made = append(made, id)
			}
		}
		rows = []row{{
			name: fmt.Sprintf("%d sessions created in one burst: how many did not succeed", b.burst), measured: fmt.Sprintf("%.0f ms for all", micros(took)/1000),
			baseline: fmt.Sprintf("%.1f ms for one alone", micros(one)/1000), value: float64(b.burst - len(made)), must: 0,
		}}
		if len(made) < b.burst {
			rows[0].measured += fmt.Sprintf("; %.200s", told(errors.Join(errs...)))
		}
		return closeAll(ctx, c, made)
	})
	return rows, err
}

// crowdRounds is how often a crowd is measured. When the machine stands still for a
// moment, all calls that are under way are late, and one in twenty is enough to be the
// slowest of a hundred: one round would tell of the machine.
const crowdRounds = 5

// crowdRow runs programs in many sessions at once, in each one after the other.
func (b *served) crowdRow(ctx context.Context) (rows []row, err error) {
	err = b.inSessions(ctx, b.sessions, cove.Spec{}, func(c *client.Client, ids []cove.ID) error {
		if _, err := b.crowd(ctx, c, ids, 1); err != nil { // connections are made once
			return err
		}
		var rounds []measure.Series
		for range crowdRounds {
			took, err := b.crowd(ctx, c, ids, b.each)
			if err != nil {
				return err
			}
			rounds = append(rounds, took)
		}
		slices.SortFunc(rounds, func(x, y measure.Series) int { return cmp.Compare(tail(x), tail(y)) })
		took := rounds[len(rounds)/2]
		rows = []row{{
			name:     fmt.Sprintf("%d sessions × %d commands at once, no error: p99 ÷ p50", b.sessions, b.each),
			measured: fmt.Sprintf("p99 %.1f ms; in %d rounds %.2f to %.2f times p50", micros(took.P99())/1000, crowdRounds, tail(rounds[0]), tail(rounds[len(rounds)-1])),
			baseline: fmt.Sprintf("p50 %.1f ms, in the middle one of the rounds", micros(took.Median())/1000),
			value:    tail(took), must: 10,
		}}
		return nil
	})
	return rows, err
}

// crowd runs that many programs in each session, and returns how long each took.
func (b *served) crowd(ctx context.Context, c *client.Client, ids []cove.ID, each int) (took measure.Series, err error) {
	var mu sync.Mutex
	errs := make([]error, len(ids))
	measure.Together(len(ids), func(i int) {
		for range each {
			began := time.Now()
			if err := execTrue(ctx, c, ids[i]); err != nil {
				errs[i] = errors.Join(errs[i], err)
				continue
			}
			d := time.Since(began)
			mu.Lock()
			took = append(took, d)
			mu.Unlock()
		}
	})
	return took, errors.Join(errs...)
}

// tail is how many times the median the slowest of a hundred is.
func tail(s measure.Series) float64 { return float64(s.P99()) / float64(max(1, s.Median())) }

// churnRow makes and destroys sessions, and counts what the server, its keeper and
// all below them have more than before.
func (b *served) churnRow(ctx context.Context) (rows []row, err error) {
	var groups []string
	err = b.inSessions(ctx, 1, cove.Spec{}, func(c *client.Client, ids []cove.ID) error {
		if err := execTrue(ctx, c, ids[0]); err != nil {
			return err
		}
		groups, err = measure.Groups()
		return err
	})
	if err != nil {
		return nil, err
	}
	err = b.with(func(c *client.Client) error {
		each, left, err := measure.Leftover(ctx, groups, b.churn, func(ctx context.Context) error {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{})
			if err != nil {
				return err
			}
			return closeAll(ctx, c, []cove.ID{s.ID})
		})
		if err != nil {
			return err
		}
		rows = []row{{
			name:     fmt.Sprintf("left after %d sessions created and destroyed over HTTP: processes, mounts, cgroups, namespaces, descriptors", b.churn),
			measured: fmt.Sprintf("%+d, %+d, %+d, %+d, %+d", left.Processes, left.Mounts, left.Cgroups, left.Namespaces, left.Descriptors),
			baseline: fmt.Sprintf("the counts of the server, its keeper and all below them before; one took %.1f ms", micros(each)/1000),
			value:    float64(left.Surplus()), must: 0,
		}}
		return nil
	})
	return rows, err
}
