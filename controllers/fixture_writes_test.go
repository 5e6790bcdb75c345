// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Names of the operator's writes.
const (
	writePlan      = "apply ConfigMap"
	writeInjection = "apply PodInjection"
	writeResize    = "patch Pod resize"
	writeRefresh   = "patch Pod"
	writeStatus    = "patch StreamApp status"
)

// writeGate is between the operator and the API server. It counts the operator's writes, and can fail them.
type writeGate struct {
	mu     sync.Mutex
	passed []string // sent writes, in order
	fail   func(write string) error
}

// failWith sets the function that returns the error of a write, which is then not sent. With nil all writes are sent.
func (g *writeGate) failWith(fail func(write string) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = fail
}

// count returns the number of sent writes with this name.
func (g *writeGate) count(write string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	total := 0
	for _, name := range g.passed {
		if name == write {
			total++
		}
	}
	return total
}

// all returns the names of all sent writes.
func (g *writeGate) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.passed...)
}

// pass names a write and records it, or returns its error.
func (g *writeGate) pass(verb string, object any, subresource string) error {
	kind := fmt.Sprintf("%T", object)
	kind = strings.TrimSuffix(kind[strings.LastIndex(kind, ".")+1:], "ApplyConfiguration")
	write := strings.TrimSpace(verb + " " + kind + " " + subresource)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		if err := g.fail(write); err != nil {
			return err
		}
	}
	g.passed = append(g.passed, write)
	return nil
}

// withoutWatch adds Watch, which interceptors require, to a client reading from a cache.
type withoutWatch struct{ client.Client }

func (withoutWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("the reconciler must watch through its manager")
}

// around returns a client whose writes pass the gate.
func (g *writeGate) around(c client.Client) client.Client {
	return interceptor.NewClient(withoutWatch{c}, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := g.pass("create", o, ""); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := g.pass("update", o, ""); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := g.pass("delete", o, ""); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := g.pass("patch", o, ""); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := g.pass("apply", o, ""); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := g.pass("patch", o, sub); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := g.pass("update", o, sub); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
}
