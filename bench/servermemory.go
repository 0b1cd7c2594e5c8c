package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// memoryRow compares the memory of the server before something with after it.
func (b *served) memoryRow(ctx context.Context, name string, do func(context.Context) (what string, err error)) ([]row, error) {
	before, err := b.resident(ctx)
	if err != nil {
		return nil, err
	}
	what, err := do(ctx)
	if err != nil {
		return nil, err
	}
	after, err := b.resident(ctx)
	if err != nil {
		return nil, err
	}
	return []row{{
		name: name, measured: megabytes(after) + "; " + what, baseline: megabytes(before) + " before",
		value: float64(after) / float64(before), must: 1.2,
	}}, nil
}

// resident is the median of what the server has in memory while it has nothing to
// do: it gives pages back in its own time.
func (b *served) resident(ctx context.Context) (cove.Bytes, error) {
	const looks = 20
	tick := time.NewTicker(b.look)
	defer tick.Stop()
	var seen measure.Series
	for range looks {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
		n, err := measure.Resident(b.home.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		seen = append(seen, time.Duration(n))
	}
	return cove.Bytes(seen.Median()), nil
}

// steadyRow runs very many programs by several callers, each in a session of its
// own. A tenth of them more warm up.
func (b *served) steadyRow(ctx context.Context) (rows []row, err error) {
	err = b.inSessions(ctx, b.callers, cove.Spec{}, func(c *client.Client, ids []cove.ID) error {
		run := func(ctx context.Context, n int) error {
			errs := make([]error, b.callers)
			measure.Together(b.callers, func(i int) {
				for k := i; k < n && errs[i] == nil; k += b.callers {
					errs[i] = execTrue(ctx, c, ids[i])
				}
			})
			return errors.Join(errs...)
		}
		if err := run(ctx, b.execs/10); err != nil {
			return err
		}
		rows, err = b.memoryRow(ctx, fmt.Sprintf("memory of the server after %d execs ÷ before", b.execs), func(ctx context.Context) (string, error) {
			began := time.Now()
			err := run(ctx, b.execs)
			return fmt.Sprintf("%.0f execs/s by %d callers", float64(b.execs)/time.Since(began).Seconds(), b.callers), err
		})
		return err
	})
	return rows, err
}

// transferRow sends a large file in and takes it out again, after a small one.
func (b *served) transferRow(ctx context.Context) (rows []row, err error) {
	spec := cove.Spec{Flavor: roomy, Workspace: cove.Workspace{Size: b.transfer + 64*cove.MiB}}
	err = b.inSessions(ctx, 1, spec, func(c *client.Client, ids []cove.ID) error {
		files := c.Files(ids[0])
		for range 3 {
			if _, err := roundTrip(ctx, files, min(b.transfer, 16*cove.MiB)); err != nil {
				return err
			}
		}
		rows, err = b.memoryRow(ctx, fmt.Sprintf("memory of the server after an upload and a download of %.2g GB ÷ before", float64(b.transfer)/1e9),
			func(ctx context.Context) (string, error) { return roundTrip(ctx, files, b.transfer) })
		return err
	})
	return rows, err
}

// roundTrip writes a file and reads it, and says how fast it was.
func roundTrip(ctx context.Context, files cove.Files, size cove.Bytes) (string, error) {
	const name = "large"
	sent, got := crc32.NewIEEE(), crc32.NewIEEE()
	began := time.Now()
	if err := files.Write(ctx, name, io.TeeReader(io.LimitReader(&noise{}, int64(size)), sent), 0); err != nil {
		return "", err
	}
	up := time.Since(began)
	began = time.Now()
	r, err := files.Read(ctx, name, 0, 0)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(got, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	down := time.Since(began)
	if n != int64(size) || sent.Sum32() != got.Sum32() {
		return "", fmt.Errorf("%d bytes were written, and %d others came back", size, n)
	}
	rate := func(d time.Duration) float64 { return float64(size) / 1e6 / max(d, 1).Seconds() }
	return fmt.Sprintf("up %.0f MB/s, down %.0f MB/s", rate(up), rate(down)), files.Remove(ctx, name)
}

// noise is bytes without an end, of which no two blocks are the same.
type noise struct{ n uint64 }

func (z *noise) Read(p []byte) (int, error) {
	const step = 8
	for i := 0; i < len(p); i += step {
		z.n = z.n*6364136223846793005 + 1442695040888963407
		var block [step]byte
		binary.LittleEndian.PutUint64(block[:], z.n)
		copy(p[i:], block[:])
	}
	return len(p), nil
}
